//! The stores and the transport of a story.

use urr_kv::KvConfig;
use urr_queue::{DOMAIN, Limits};
use urr_testkit::{DbKind, Proxy, STORY_LIMIT, Transport, redis, redis_cluster, within};

use crate::world::World;

/// Where the rooms are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RoomKind {
    Memory,
    Redis,
    Cluster,
    /// Redis behind a proxy that can cut the connection.
    Proxied,
}

/// Where a story runs. The story chooses the limits of its world.
pub(crate) struct Stage {
    db: DbKind,
    room: RoomKind,
    transport: Transport,
}

impl Stage {
    pub(crate) async fn run(
        (db, room, transport): (DbKind, RoomKind, Transport),
        story: impl AsyncFnOnce(&Self),
    ) {
        within(STORY_LIMIT, story(&Self { db, room, transport })).await;
    }

    /// A service with this number of slots. `None`, with a warning from testkit, if a store is not
    /// available.
    pub(crate) async fn slots(&self, threshold: u32) -> Option<World> {
        self.world(Limits { threshold, ..Limits::default() }).await
    }

    pub(crate) async fn world(&self, limits: Limits) -> Option<World> {
        let (config, proxy) = match self.room {
            RoomKind::Memory => (None, None),
            RoomKind::Redis => (Some(redis()?), None),
            RoomKind::Cluster => (Some(redis_cluster()?), None),
            RoomKind::Proxied => {
                let config = redis()?;
                let server = config.urls[0].trim_start_matches("redis://").trim_end_matches('/');
                let proxy = Proxy::start(server).await;
                let urls = vec![format!("redis://{}", proxy.address())];
                (Some(KvConfig { urls, ..config }), Some(proxy.into()))
            }
        };
        let (dir, db) = self.db.open(&DOMAIN).await?;
        Some(World::new((dir, db), config, proxy, self.transport, limits).await)
    }
}
