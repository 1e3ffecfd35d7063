//! Backend matrix, fixed clock, seeded ids, fresh databases for tests.
