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
        let about = "Roles that this process calls and that run in others. A role that is needed must be here or there; \
                     here wins, so that one file can serve all processes.";
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
        let about = "Roles whose public routes the role `gateway` passes on: the public listeners of their processes, \
                     which need the same `security.secret`. Several are used in turn. A role that runs here is not \
                     passed on.";
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
