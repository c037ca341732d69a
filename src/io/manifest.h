/* Sizes and hashes of the files of a folder: manifest.json, or a member of another record. Nothing is kept
 * between calls. */
#ifndef SES_IO_MANIFEST_H
#define SES_IO_MANIFEST_H

#include "sesame/json.h"

/* SHA-256 can be compared with other programs; a checksum (ses_checksum_chunks) takes the least time. */
typedef enum { SES_MANIFEST_SIPHASH, SES_MANIFEST_SHA256, SES_MANIFEST_CHECKSUM } ses_manifest_hash;

/* Writes manifest.json with every other file of the folder. */
bool ses_manifest_write(const char *dir, ses_err *e);
/* Fails with SES_EFORMAT on the first file that is missing, changed or not listed. Hidden files are
 * ignored. */
bool ses_manifest_check(const char *dir, ses_err *e);

/* Puts an object: the regular files of the folder by name, without hidden files and subfolders. */
bool ses_manifest_put(ses_json_writer *w, const char *dir, ses_manifest_hash hash, ses_err *e);
/* Compares such an object with the folder. Fails with SES_EFORMAT on the first file that is missing or
 * changed, or not listed unless `more` allows further files. list: where the object is, for messages. */
bool ses_manifest_compare(const ses_json *files, const char *list, const char *dir, bool more, ses_err *e);

/* config.json of Sesame's own formats: a record (base/json/json_helpers.h) whose member "files" lists the
 * other files of the folder. save adds the member to the object that w has begun, ends it, writes the file
 * and frees w. check fails if the record or a listed file is damaged; folders of older versions have neither
 * checksum. */
bool ses_manifest_save_config(ses_json_writer *w, const char *dir, ses_err *e);
bool ses_manifest_check_config(const ses_json *config, const char *dir, ses_err *e);

#endif
