//! The gateway: API versions, access tokens, rate limits and roles, in front of local routers or a
//! proxy.
//!
//! Order of the steps: strip the version from the path, strip internal headers, look the route up
//! in the [`table`], verify the access token into an [`Actor`](urr_kernel::Actor), count the
//! request, check access by the table. Only then is the request routed, so that a guard and the
//! route it guards always see the same path.

pub mod address;
mod codes;
mod compress;
mod dispatcher;
mod front;
mod gateways;
mod guards;
mod inbound;
pub mod limit;
mod openapi;
mod origin;
mod preflight;
mod proxy;
pub mod revoked;
pub mod rooms;
mod settings;
pub mod slots;
mod streams;
pub mod table;
pub mod tier2_tokens;
mod token;
mod version;

pub use self::{
    codes::CODES,
    dispatcher::Gateway,
    front::Front,
    gateways::Gateways,
    guards::Guards,
    origin::{BadOrigin, Origins},
    proxy::Upstream,
    settings::Settings,
};
