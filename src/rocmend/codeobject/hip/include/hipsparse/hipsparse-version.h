// The version of hipSPARSE that rocmend's declarations are of, where it is not installed.
#ifndef ROCMEND_HIPSPARSE_VERSION_H
#define ROCMEND_HIPSPARSE_VERSION_H

#warning rocmend stand-in: hipsparse/hipsparse-version.h

#define hipsparseVersionMajor 4
#define hipsparseVersionMinor 1
#define hipsparseVersionPatch 0

#endif
