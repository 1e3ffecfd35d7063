//! One behavioural suite for both engines. `URR_TEST_POSTGRES` names the PostgreSQL server; without
//! it those tests are skipped with a warning.

#[cfg(test)]
mod fresh;
#[cfg(test)]
mod group_commit;
#[cfg(test)]
mod inbox;
#[cfg(test)]
mod leases;
#[cfg(test)]
mod migrations;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod outbox;
#[cfg(test)]
mod postgres;
#[cfg(test)]
mod provision;
#[cfg(test)]
mod statements;
#[cfg(test)]
mod transactions;
#[cfg(test)]
mod values;
