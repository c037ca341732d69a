/* CRC-32C (Castagnoli polynomial, as in iSCSI, RFC 3720), and the masked form that TensorFlow's files
 * store: a CRC of data that contains CRCs would be weak. */
#ifndef SES_BASE_CRC32C_H
#define SES_BASE_CRC32C_H

#include "sesame/base.h"

uint32_t ses_crc32c(const void *p, size_t n);
uint32_t ses_crc32c_mask(uint32_t crc);

#endif
