//! The parts of the product a process can run.

use std::{cmp::Ordering, collections::BTreeSet, fmt, ops::Deref};

use crate::{
    config::{Kind, nearest},
    domains::{self, Declaration},
};

/// One part of the product, by its declaration. A process runs any set of them.
#[derive(Clone, Copy)]
pub(crate) struct Role(&'static Declaration);

impl Role {
    /// The role with this declaration.
    pub(crate) const fn of(declaration: &'static Declaration) -> Self {
        Self(declaration)
    }

    /// Every role.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        domains::ALL.iter().copied()
    }

    /// The roles that own a database.
    pub(crate) fn domains() -> impl Iterator<Item = Self> {
        Self::all().filter(|role| role.tables.is_some())
    }

    /// The roles that have public routes.
    pub(crate) fn serving() -> impl Iterator<Item = Self> {
        Self::all().filter(|role| role.routes.is_some())
    }
}

impl From<&'static Declaration> for Role {
    fn from(declaration: &'static Declaration) -> Self {
        Self(declaration)
    }
}

impl Deref for Role {
    type Target = Declaration;

    fn deref(&self) -> &Declaration {
        self.0
    }
}

impl fmt::Debug for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Role {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Role {}

impl PartialOrd for Role {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Role {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(other.name)
    }
}

/// The roles of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roles(BTreeSet<Role>);

impl Roles {
    /// The default: every role except those that `all` leaves out.
    pub(crate) fn all() -> Self {
        Self(Role::all().filter(|role| role.in_all).collect())
    }

    /// Whether this process runs `role`.
    pub(crate) fn has(&self, role: impl Into<Role>) -> bool {
        self.0.contains(&role.into())
    }

    /// The roles among them that own a database.
    pub(crate) fn domains(&self) -> impl Iterator<Item = Role> {
        self.iter().filter(|role| role.tables.is_some())
    }

    /// The roles in a stable order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Role> {
        self.0.iter().copied()
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().collect())
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, role) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            f.write_str(role.name)?;
        }
        Ok(())
    }
}

impl Kind for Roles {
    type Value = Self;

    fn describe() -> String {
        let quoted = |role: Role| format!("`{}`", role.name);
        let (all, left_out): (Vec<_>, Vec<_>) = (
            Role::all().map(quoted).collect(),
            Role::all().filter(|role| !role.in_all).map(quoted).collect(),
        );
        format!("`all` (but {}), or a list of {}", left_out.join(", "), all.join(", "))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::all());
        }
        let roles = text.split(',').map(|name| one(name.trim())).collect::<Result<_, _>>()?;
        Ok(Self(roles))
    }
}

fn one(name: &str) -> Result<Role, String> {
    let names = || Role::all().map(|role| role.name);
    Role::all().find(|role| role.name == name).ok_or_else(|| {
        let meant =
            nearest(name, names()).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        format!("`{name}` is none of {}{meant}", names().collect::<Vec<_>>().join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_parse_from_a_list_and_unknown_names_get_a_suggestion() {
        assert_eq!(Roles::parse("all"), Ok(Roles::all()));
        let some = Roles::parse("tickets, catalog").unwrap();
        assert!(
            some.has(&domains::tickets::ROLE)
                && some.has(&domains::catalog::ROLE)
                && !some.has(&domains::gateway::ROLE)
        );
        assert_eq!(some.to_string(), "catalog,tickets");
        assert!(Roles::parse("tickets,catalgo").unwrap_err().contains("did you mean `catalog`"));
        assert!(Roles::parse("").is_err());
    }
}
