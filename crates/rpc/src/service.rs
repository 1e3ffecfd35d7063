//! The `service!` macro.

/// Declares a service: the trait, its HTTP client and its HTTP server.
///
/// [`Remote`](crate::Remote) may retry methods marked `@idempotent` when it is unknown whether the
/// first call arrived.
///
/// ```text
/// service! {
///     /// Seats, holds and reservations.
///     pub trait Tickets as "tickets" -> Error {
///         /// Holds every named seat for one buyer, or none of them.
///         async fn hold(HoldSeats) -> Reservation;
///         /// The state of every seat of an event.
///         @idempotent async fn seat_map(SeatMapOf) -> SeatMap;
///     }
/// }
/// ```
#[macro_export]
macro_rules! service {
    ($(#[$meta:meta])* pub trait $Service:ident as $domain:literal -> $Error:ty {
        $( $(#[$doc:meta])* $(@$mark:ident)? async fn $method:ident($Request:ty) -> $Reply:ty; )*
    }) => {
        $(#[$meta])*
        #[$crate::private::async_trait]
        pub trait $Service: Send + Sync + 'static {
            $(
                $(#[$doc])*
                async fn $method(&self, ctx: &$crate::Ctx, request: $Request) -> Result<$Reply, $Error>;
            )*
        }

        #[$crate::private::async_trait]
        impl $Service for $crate::Remote {
            $(
                async fn $method(&self, ctx: &$crate::Ctx, request: $Request) -> Result<$Reply, $Error> {
                    let path = concat!("/internal/", $domain, "/", stringify!($method));
                    self.call(ctx, path, &request, $crate::service!(@retry $($mark)?)).await
                }
            )*
        }

        impl $crate::Peer for dyn $Service {
            const ROLE: &'static str = $domain;

            fn remote(remote: $crate::Remote) -> ::std::sync::Arc<Self> {
                ::std::sync::Arc::new(remote)
            }
        }

        /// The HTTP routes that serve other roles.
        pub fn internal_routes(
            service: ::std::sync::Arc<dyn $Service>,
            clock: ::urr_kernel::Clock,
            ids: ::urr_kernel::Ids,
        ) -> $crate::private::Router {
            $crate::private::Router::new()
                $(.route(
                    concat!("/internal/", $domain, "/", stringify!($method)),
                    $crate::private::post({
                        let service = ::std::sync::Arc::clone(&service);
                        async move |call: $crate::private::Internal<$Request>| {
                            let budget = call.ctx.remaining();
                            $crate::private::answer(budget, service.$method(&call.ctx, call.request)).await
                        }
                    }),
                ))*
                .with_state((clock, ids))
        }
    };
    (@retry) => { $crate::Retry::Never };
    (@retry idempotent) => { $crate::Retry::Safe };
}
