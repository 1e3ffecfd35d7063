//! service!, Remote, Ctx: one declaration of a service, local or over HTTP.
