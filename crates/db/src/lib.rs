#![doc = include_str!("../README.md")]

mod base;
mod check;
mod columns;
mod data_dir;
mod db;
pub mod dead_letters;
mod error;
pub mod inbox;
pub mod lease;
mod measure;
mod migrate;
pub mod offsets;
pub mod outbox;
mod postgres;
mod settings;
mod sql;
mod sqlite;
mod tx;

#[doc(hidden)]
pub use urr_kernel as kernel;

#[doc(hidden)]
pub use self::db::Attempts;
pub use self::{
    base::base_statements,
    check::check_statements,
    columns::{EnumText, Json, JsonText, enum_text, parse_enum},
    data_dir::{DataDir, DataDirError},
    db::{Db, EngineKind},
    error::{Error, Kind},
    migrate::{Domain, Migration},
    outbox::{Message, Position},
    postgres::{PostgresConfig, postgres_provision},
    settings::{Settings, StorageKind},
    sql::Sql,
    sqlite::SqliteOptions,
    tx::{MAX_ROWS, Row, Tx},
};
