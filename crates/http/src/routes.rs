//! A router that can say which routes it has. axum's cannot, and a guard that does not know a route cannot guard it.

use axum::{
    Router,
    handler::Handler,
    routing::{self, MethodRouter},
};
use http::Method;

use crate::About;

/// One route: a method, a path with its parameters in braces, and what the API document says about it.
#[derive(Clone, Debug)]
pub struct RouteName {
    /// The method. GET also answers HEAD.
    pub method: Method,
    /// The path, such as `/api/events/{id}`.
    pub path: &'static str,
    /// What it takes and answers.
    pub about: About,
}

/// Builds a router and keeps a list of what is in it. Domains offer their public routes in this form, so that the gateway can
/// refuse to start with a route that nobody classified.
#[derive(Clone, Debug)]
pub struct Routes<S = ()> {
    /// What answers at each path.
    paths: Vec<(&'static str, MethodRouter<S>)>,
    names: Vec<RouteName>,
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<H, T>(self, path: &'static str, handler: H) -> Self
        where
            H: Handler<T, S>,
            T: 'static,
        {
            self.with(Method::$method, path, routing::$name(handler))
        }
    )*};
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// No routes yet.
    pub fn new() -> Self {
        Self { paths: Vec::new(), names: Vec::new() }
    }

    methods! {
        /// Adds a route for GET, which answers HEAD too.
        get = GET;
        /// Adds a route for POST.
        post = POST;
        /// Adds a route for PUT.
        put = PUT;
        /// Adds a route for PATCH.
        patch = PATCH;
        /// Adds a route for DELETE.
        delete = DELETE;
    }

    fn with(mut self, method: Method, path: &'static str, route: MethodRouter<S>) -> Self {
        self.names.push(RouteName { method, path, about: About::default() });
        self.at(path, route);
        self
    }

    fn at(&mut self, path: &'static str, route: MethodRouter<S>) {
        match self.paths.iter_mut().find(|(known, _)| *known == path) {
            Some((_, methods)) => *methods = std::mem::take(methods).merge(route),
            None => self.paths.push((path, route)),
        }
    }

    /// Says what the route that was added last takes and answers.
    ///
    /// # Panics
    /// When there is none.
    pub fn about(mut self, about: About) -> Self {
        self.names.last_mut().expect("a route comes before what is said about it").about = about;
        self
    }

    /// The routes of both.
    pub fn merge(mut self, other: Self) -> Self {
        self.names.extend(other.names);
        for (path, route) in other.paths {
            self.at(path, route);
        }
        self
    }

    /// Gives handlers what they work with.
    pub fn with_state<S2>(self, state: S) -> Routes<S2> {
        let paths = self.paths.into_iter().map(|(path, route)| (path, route.with_state(state.clone())));
        Routes { paths: paths.collect(), names: self.names }
    }

    /// A router for each path, which answers nothing else. Whoever has chosen the path need not have it chosen again.
    pub fn by_path(self) -> impl Iterator<Item = (&'static str, Router<S>)> {
        self.paths.into_iter().map(|(path, route)| (path, Router::new().route(path, route)))
    }

    /// What is in it, in the order it was added.
    pub fn names(&self) -> &[RouteName] {
        &self.names
    }
}

impl<S: Clone + Send + Sync + 'static> From<Routes<S>> for Router<S> {
    fn from(routes: Routes<S>) -> Self {
        routes.paths.into_iter().fold(Self::new(), |router, (path, route)| router.route(path, route))
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request};
    use http::StatusCode;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn what_is_listed_is_what_is_served() {
        let one = Routes::new().get("/a/{id}", async || "get").put("/a/{id}", async || "put");
        let routes = one.merge(Routes::new().delete("/b", async || "delete")).with_state::<()>(());
        let names: Vec<_> = routes.names().iter().map(|name| (name.method.as_str(), name.path)).collect();
        assert_eq!(names, [("GET", "/a/{id}"), ("PUT", "/a/{id}"), ("DELETE", "/b")]);
        let alone: Vec<_> = routes.clone().by_path().collect();
        assert_eq!(alone.iter().map(|(path, _)| *path).collect::<Vec<_>>(), ["/a/{id}", "/b"]);
        let elsewhere = Request::get("/b").body(Body::empty()).unwrap();
        let (_, first) = &alone[0];
        assert_eq!(first.clone().oneshot(elsewhere).await.unwrap().status(), StatusCode::NOT_FOUND);
        let served = Router::from(routes);
        for (method, path, status) in [
            ("GET", "/a/1", StatusCode::OK),
            ("HEAD", "/a/1", StatusCode::OK),
            ("PUT", "/a/1", StatusCode::OK),
            ("DELETE", "/b", StatusCode::OK),
            ("GET", "/b", StatusCode::METHOD_NOT_ALLOWED),
        ] {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            assert_eq!(served.clone().oneshot(request).await.unwrap().status(), status, "{method} {path}");
        }
    }
}
