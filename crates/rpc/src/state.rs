//! The `handler_state!` macro.

/// Declares the state of route handlers: a shared service with the fields `clock` and `ids`, from
/// which handlers take their [`Ctx`](crate::Ctx).
///
/// ```text
/// handler_state! {
///     /// State of the route handlers.
///     pub(crate) struct Api(Service);
/// }
/// ```
#[macro_export]
macro_rules! handler_state {
    ($(#[$meta:meta])* $visibility:vis struct $State:ident($Service:ty);) => {
        $(#[$meta])*
        #[derive(Clone)]
        $visibility struct $State($visibility ::std::sync::Arc<$Service>);

        impl $crate::private::FromRef<$State> for ::urr_kernel::Clock {
            fn from_ref(state: &$State) -> Self {
                state.0.clock.clone()
            }
        }

        impl $crate::private::FromRef<$State> for ::urr_kernel::Ids {
            fn from_ref(state: &$State) -> Self {
                state.0.ids.clone()
            }
        }
    };
}
