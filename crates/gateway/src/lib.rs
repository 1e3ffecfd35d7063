//! The front door: versions, access tokens, limits, roles, over local routers or a proxy.
//!
//! In this order: the version is taken out of the path, headers that only we may set are taken out of the request, the route is
//! looked up in the [`table`], the access token becomes an [`Actor`](urr_kernel::Actor), the request is counted, and the table says
//! whether it may go on. Only then is it routed, so a guard and the route it guards always see the same path.

pub mod address;
mod codes;
mod compress;
mod door;
mod front;
mod guards;
mod inbound;
pub mod limit;
mod openapi;
mod origin;
pub mod places;
mod preflight;
mod proxy;
pub mod revoked;
pub mod rooms;
mod settings;
pub mod slots;
mod streams;
pub mod table;
mod token;
mod version;

pub use self::{
    codes::CODES,
    door::Gateway,
    front::Front,
    guards::Guards,
    origin::{BadOrigin, Origins},
    proxy::Upstream,
    settings::Settings,
};
