# filled by the install rules
