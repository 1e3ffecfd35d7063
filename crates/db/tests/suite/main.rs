//! One behavioural suite for both engines. PostgreSQL is the server named by `URR_TEST_POSTGRES`; without it those halves
//! are skipped, loudly.

mod fresh;
mod group_commit;
mod inbox;
mod leases;
mod migrations;
mod outage;
mod outbox;
mod postgres;
mod statements;
mod transactions;
mod values;
