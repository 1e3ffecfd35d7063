//! A running server with an admin: the start of most tests.

use std::path::Path;

use urr_kernel::{EventId, SeatId};

use crate::{
    http::Connection,
    program::{self, Launch, Running},
    shop::{self, Buyer, NewEvent},
};

/// A running server and what is needed to use it.
#[derive(Debug)]
pub struct Stage {
    /// How it was started, to start it again.
    pub launch: Launch,
    /// The process.
    pub running: Running,
    /// An admin.
    pub admin: Buyer,
}

impl Stage {
    /// On SQLite and memory, with its files in `dir`.
    pub async fn embedded(dir: &Path) -> anyhow::Result<Self> {
        Self::up(program::launch(&dir.join("data"))?).await
    }

    /// Starts the launch.
    pub async fn up(launch: Launch) -> anyhow::Result<Self> {
        let running = launch.up().await?;
        let admin = Buyer::new(&launch, "admin").await?;
        Ok(Self { launch, running, admin })
    }

    /// A new connection.
    pub fn connect(&self) -> Connection {
        Connection::to(self.running.address)
    }

    /// A new buyer.
    pub async fn buyer(&self) -> anyhow::Result<Buyer> {
        Buyer::new(&self.launch, "user").await
    }

    /// Many new buyers.
    pub async fn buyers(&self, count: usize) -> anyhow::Result<Vec<Buyer>> {
        Buyer::many(&self.launch, count).await
    }

    /// A new event and its seats, in the order of the seat plan.
    pub async fn event(&self, opens_in_secs: i64) -> anyhow::Result<(EventId, Vec<SeatId>)> {
        let mut connection = self.connect();
        let event =
            shop::create_event(&mut connection, &self.admin, NewEvent { seats: 1, opens_in_secs }).await?;
        let seats = shop::seat_map(&mut connection, event).await?;
        Ok((event, seats.into_iter().map(|(seat, _)| seat).collect()))
    }
}
