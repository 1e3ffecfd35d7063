//! `[remote]` and `[upstream]`: one setting per role, generated from the list of roles.

use std::{collections::BTreeMap, sync::LazyLock};

use urr_settings::{HttpUrl, Info, List, Section, Source, Table, value};

use crate::roles::Role;

/// Roles that other processes call.
fn called() -> impl Iterator<Item = (Role, &'static str)> {
    Role::all().filter_map(|role| Some((role, role.remote.as_ref()?.doc)))
}

static REMOTE: LazyLock<Vec<Info>> = LazyLock::new(|| {
    // Leaked once per role and process.
    let info = |(role, doc): (Role, _)| {
        Info::new::<Option<HttpUrl>>(format!("remote.{}", role.name).leak(), "", doc)
    };
    called().map(info).collect()
});

static UPSTREAM: LazyLock<Vec<Info>> = LazyLock::new(|| {
    let info = |role: Role| {
        let (key, doc) = (
            format!("upstream.{}", role.name),
            format!("The public listeners of processes with the role `{}`.", role.name),
        );
        Info::new::<List<HttpUrl>>(key.leak(), "", doc.leak())
    };
    Role::serving().map(info).collect()
});

/// Internal listeners by role.
#[derive(Clone, Debug)]
pub(crate) struct Remote(BTreeMap<&'static str, HttpUrl>);

impl Remote {
    /// The internal listener of a role, if it was set.
    pub(crate) fn of(&self, role: impl Into<Role>) -> Option<&HttpUrl> {
        self.0.get(role.into().name)
    }

    /// The setting of a role; `None` for roles that other processes do not call.
    pub(crate) fn info(role: impl Into<Role>) -> Option<&'static Info> {
        let role = role.into();
        called().zip(REMOTE.iter()).find(|((called, _), _)| *called == role).map(|(_, info)| info)
    }
}

impl Section for Remote {
    fn tables() -> Vec<Table> {
        let about = "Roles in other processes that this one calls. Each role that is called must run here or be set here; \
                     if both, the local one is used, so that one file can serve all processes.";
        vec![Table { name: "remote", about }]
    }

    fn infos() -> Vec<&'static Info> {
        REMOTE.iter().collect()
    }

    fn read(source: &dyn Source) -> Self {
        let url = |info| value::<Option<HttpUrl>>(source, info);
        let urls = called().zip(REMOTE.iter());
        Self(urls.filter_map(|((role, _), info)| Some((role.name, url(info)?))).collect())
    }
}

/// Public listeners by role.
#[derive(Clone, Debug)]
pub(crate) struct Upstream(BTreeMap<&'static str, Vec<HttpUrl>>);

impl Upstream {
    /// The replicas of a role.
    pub(crate) fn of(&self, role: Role) -> &[HttpUrl] {
        self.0.get(role.name).map_or(&[][..], Vec::as_slice)
    }
}

impl Section for Upstream {
    fn tables() -> Vec<Table> {
        let about = "Roles to which the role `gateway` forwards requests: the public listeners of their processes, \
                     which need the same `security.secret`. Several are used in turn. Requests for a role that runs \
                     here are not forwarded.";
        vec![Table { name: "upstream", about }]
    }

    fn infos() -> Vec<&'static Info> {
        UPSTREAM.iter().collect()
    }

    fn read(source: &dyn Source) -> Self {
        let urls = Role::serving().zip(UPSTREAM.iter());
        Self(urls.map(|(role, info)| (role.name, value::<List<HttpUrl>>(source, info))).collect())
    }
}
