/* SPDX-License-Identifier: MIT
 * Declarations only: ./dev arm compiles for systems whose SDK is not there. */
int getpid(void);
