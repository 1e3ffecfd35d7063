//! Roles in other processes: one setting per role, made from the list of roles.

use std::{collections::BTreeMap, sync::LazyLock};

use urr_settings::{HttpUrl, Info, List, Section, Source, Table, value};

use crate::{config::Choice as _, roles::Role};

/// Roles that other processes call, and what their setting does.
const CALLED: &[(Role, &str)] = &[
    (
        Role::Auth,
        "Internal listener of the accounts if they do not run here: asked several times a second which sessions ended. \
         Left out, tokens of ended sessions are accepted until they expire, at most an hour later; the `production` \
         profile refuses that.",
    ),
    (
        Role::Catalog,
        "Internal listener of the catalog if it does not run here, or of the balancer in front of several.",
    ),
    (
        Role::Queue,
        "Internal listener of the waiting room if it does not run here: asked at most once a second and buyer whether \
         the slot is valid. Only for processes with the role `tickets`.",
    ),
    (
        Role::Vwr,
        "Internal listener of Tier 1 of the waiting room if it does not run here: asked several times a second which \
         rooms are open. Left out, no visitor is sent to wait there.",
    ),
];

static REMOTE: LazyLock<Vec<Info>> = LazyLock::new(|| {
    // Once per process, so what leaks is bounded by the number of roles.
    let info = |&(role, doc): &(Role, &'static str)| {
        Info::new::<Option<HttpUrl>>(format!("remote.{}", role.name()).leak(), "", doc)
    };
    CALLED.iter().map(info).collect()
});

static UPSTREAM: LazyLock<Vec<Info>> = LazyLock::new(|| {
    let info = |role: &Role| {
        let (key, doc) = (
            format!("upstream.{}", role.name()),
            format!("The public listeners of processes with the role `{}`.", role.name()),
        );
        Info::new::<List<HttpUrl>>(key.leak(), "", doc.leak())
    };
    Role::SERVING.iter().map(info).collect()
});

/// Internal listeners by role.
#[derive(Clone, Debug)]
pub(crate) struct Remote(BTreeMap<&'static str, HttpUrl>);

impl Remote {
    /// The internal listener of a role, if it was set.
    pub(crate) fn of(&self, role: Role) -> Option<&HttpUrl> {
        self.0.get(role.name())
    }

    /// The setting of a role; `None` for roles that other processes do not call.
    pub(crate) fn info(role: Role) -> Option<&'static Info> {
        CALLED.iter().zip(REMOTE.iter()).find(|((called, _), _)| *called == role).map(|(_, info)| info)
    }
}

impl Section for Remote {
    fn tables() -> Vec<Table> {
        let about = "Roles that this process calls and that run in others. A role that is needed must be here or there; \
                     here wins, so that one file can serve all processes.";
        vec![Table { name: "remote", about }]
    }

    fn infos() -> Vec<&'static Info> {
        REMOTE.iter().collect()
    }

    fn read(source: &dyn Source) -> Self {
        let url = |info| value::<Option<HttpUrl>>(source, info);
        let urls = CALLED.iter().zip(REMOTE.iter());
        Self(urls.filter_map(|((role, _), info)| Some((role.name(), url(info)?))).collect())
    }
}

/// Public listeners by role.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(BTreeMap<&'static str, Vec<HttpUrl>>);

impl Upstream {
    /// The replicas of a role.
    pub(crate) fn of(&self, role: Role) -> &[HttpUrl] {
        self.0.get(role.name()).map_or(&[][..], Vec::as_slice)
    }
}

impl Section for Upstream {
    fn tables() -> Vec<Table> {
        let about = "Roles whose public routes the role `gateway` passes on: the public listeners of their processes, \
                     which need the same `security.secret`. Several are used in turn. A role that runs here is not \
                     passed on.";
        vec![Table { name: "upstream", about }]
    }

    fn infos() -> Vec<&'static Info> {
        UPSTREAM.iter().collect()
    }

    fn read(source: &dyn Source) -> Self {
        let urls = Role::SERVING.iter().zip(UPSTREAM.iter());
        Self(urls.map(|(role, info)| (role.name(), value::<List<HttpUrl>>(source, info))).collect())
    }
}
