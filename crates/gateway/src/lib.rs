//! The front door: versioning, cookies, access tokens over local routers.
