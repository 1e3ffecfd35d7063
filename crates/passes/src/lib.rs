//! Every signed token: sign, verify, claims, key separation.
