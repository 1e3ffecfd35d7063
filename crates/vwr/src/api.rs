//! State of the route handlers.

use urr_rpc::handler_state;

use crate::service::Service;

handler_state! {
    /// State of the route handlers.
    pub(crate) struct Api(Service);
}
