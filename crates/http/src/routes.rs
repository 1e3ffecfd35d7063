//! A router that lists its routes. axum's cannot, and the gateway guards only routes that it knows.

use axum::{
    Router,
    handler::Handler,
    routing::{self, MethodRouter},
};
use http::Method;

use crate::{
    About, AtPath, Policy,
    endpoint::{Answering, Endpoint},
};

/// One route: method, path, policy, and its entry in the API document.
#[derive(Clone, Debug)]
pub struct RouteName {
    /// The method. GET also answers HEAD.
    pub method: Method,
    /// Whether the route answers every method the way it answers GET.
    pub any_method: bool,
    /// The path, such as `/api/events/{id}`.
    pub path: &'static str,
    /// Who may call it and which guards apply.
    pub policy: Policy,
    /// Its entry in the API document.
    pub about: About,
}

/// Builds a router and keeps the list of its routes, from which the gateway builds its route table
/// and the API document.
#[derive(Clone, Debug)]
pub struct Routes<S = ()> {
    paths: Vec<Served<S>>,
    names: Vec<RouteName>,
}

/// The handlers of one path.
#[derive(Clone, Debug)]
struct Served<S> {
    path: &'static str,
    methods: MethodRouter<S>,
    /// The same handlers for direct calls. Empty if the path has parameters, which need a router.
    endpoints: Vec<Endpoint<S>>,
}

impl<S: Clone + Send + Sync + 'static> Default for Routes<S> {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident = $method:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name<H, T>(self, path: &'static str, policy: Policy, handler: H) -> Self
        where
            H: Handler<T, S, Future = Answering>,
            T: 'static,
        {
            self.with((Method::$method, false), (path, policy), routing::$name(handler.clone()), handler)
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

    /// Adds a route that answers every method in the same way. It is listed as GET.
    pub fn any<H, T>(self, path: &'static str, policy: Policy, handler: H) -> Self
    where
        H: Handler<T, S, Future = Answering>,
        T: 'static,
    {
        self.with((Method::GET, true), (path, policy), routing::any(handler.clone()), handler)
    }

    fn with<H, T>(
        mut self,
        (method, any_method): (Method, bool),
        (path, policy): (&'static str, Policy),
        methods: MethodRouter<S>,
        handler: H,
    ) -> Self
    where
        H: Handler<T, S, Future = Answering>,
        T: 'static,
    {
        let about = About::default();
        self.names.push(RouteName { method: method.clone(), any_method, path, policy, about });
        let has_parameters = path.contains('{');
        let endpoints = if has_parameters { Vec::new() } else { vec![Endpoint::new(method, handler)] };
        self.serve(Served { path, methods, endpoints });
        self
    }

    fn serve(&mut self, more: Served<S>) {
        match self.paths.iter_mut().find(|known| known.path == more.path) {
            Some(known) => {
                known.methods = std::mem::take(&mut known.methods).merge(more.methods);
                known.endpoints.extend(more.endpoints);
            }
            None => self.paths.push(more),
        }
    }

    /// Sets the API document entry of the route added last.
    ///
    /// # Panics
    /// If no route was added yet.
    pub fn about(mut self, about: About) -> Self {
        self.names.last_mut().expect("`about` follows a route").about = about;
        self
    }

    /// The routes of both.
    pub fn merge(mut self, other: Self) -> Self {
        self.names.extend(other.names);
        other.paths.into_iter().for_each(|more| self.serve(more));
        self
    }

    /// Binds the handlers to their state.
    pub fn with_state<S2>(self, state: S) -> Routes<S2> {
        let stated = |Served { path, methods, endpoints }: Served<S>| Served {
            path,
            methods: methods.with_state(state.clone()),
            endpoints: endpoints.into_iter().map(|endpoint| endpoint.with_state(state.clone())).collect(),
        };
        Routes { paths: self.paths.into_iter().map(stated).collect(), names: self.names }
    }

    /// The routes in the order they were added.
    pub fn names(&self) -> &[RouteName] {
        &self.names
    }
}

impl Routes {
    /// The handlers by path, for a caller that matches paths itself.
    pub fn by_path(self) -> impl Iterator<Item = (&'static str, AtPath)> {
        let alone = |Served { path, methods, endpoints }: Served<()>| {
            (path, AtPath::new(Router::new().route(path, methods), endpoints))
        };
        self.paths.into_iter().map(alone)
    }
}

impl<S: Clone + Send + Sync + 'static> From<Routes<S>> for Router<S> {
    fn from(routes: Routes<S>) -> Self {
        let add = |router: Self, served: Served<S>| router.route(served.path, served.methods);
        routes.paths.into_iter().fold(Self::new(), add)
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request};
    use http::StatusCode;
    use tower::ServiceExt as _;

    use super::*;
    use crate::PUBLIC;

    #[tokio::test]
    async fn listed_routes_are_served() {
        let one = Routes::new().get("/a/{id}", PUBLIC, async || "get").put("/a/{id}", PUBLIC, async || "put");
        let other = Routes::new().delete("/b", PUBLIC, async || "delete").any("/c", PUBLIC, async || "any");
        let routes = one.merge(other).with_state::<()>(());
        let names: Vec<_> = routes.names().iter().map(|name| (name.method.as_str(), name.path)).collect();
        assert_eq!(names, [("GET", "/a/{id}"), ("PUT", "/a/{id}"), ("DELETE", "/b"), ("GET", "/c")]);
        let alone: Vec<_> = routes.clone().by_path().collect();
        assert_eq!(alone.iter().map(|(path, _)| *path).collect::<Vec<_>>(), ["/a/{id}", "/b", "/c"]);
        for (which, method, path, status) in [
            (0, "PUT", "/a/1", StatusCode::OK),
            (0, "DELETE", "/b", StatusCode::NOT_FOUND),
            (1, "DELETE", "/b", StatusCode::OK),
            (1, "GET", "/b", StatusCode::METHOD_NOT_ALLOWED),
            (2, "GET", "/c", StatusCode::OK),
            (2, "HEAD", "/c", StatusCode::OK),
            (2, "OPTIONS", "/c", StatusCode::OK),
            (2, "PROPFIND", "/c", StatusCode::OK),
        ] {
            let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
            let (_, answers) = &alone[which];
            assert_eq!(answers.respond(request).await.status(), status, "{method} {path}");
        }
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
