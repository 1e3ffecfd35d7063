//! The parts of the product a process can run.

use std::{collections::BTreeSet, fmt};

use crate::config::{Choice, Kind, choice};

choice! {
    /// One part of the product. One process runs any set of them.
    pub(crate) enum Role {
        /// Accounts and sessions.
        Auth = "auth",
        /// Events, halls and seats as they are offered.
        Catalog = "catalog",
        /// Passes requests on to domains that run elsewhere. The guards stand at every public listener, with it or without.
        Gateway = "gateway",
        /// Reads notices of admissions. `all` leaves it out: what it reads is gone for everybody else who might read it.
        Notices = "notices",
        /// The waiting room in front of one event's seats.
        Queue = "queue",
        /// The pages.
        Site = "site",
        /// Holds, reservations and tickets.
        Tickets = "tickets",
        /// Tier 1 of the waiting room: the line in front of everything.
        Vwr = "vwr",
    }
}

impl Role {
    /// The domains this role calls while it answers: each must be here or remote. The call graph is a DAG, see
    /// ARCHITECTURE.md.
    pub(crate) fn needs(self) -> &'static [Role] {
        match self {
            Self::Queue | Self::Tickets => &[Self::Catalog],
            Self::Site => &[Self::Auth, Self::Catalog],
            Self::Auth | Self::Catalog | Self::Gateway | Self::Notices | Self::Vwr => &[],
        }
    }

    /// The roles that own a database.
    pub(crate) const DOMAINS: &'static [Role] =
        &[Self::Auth, Self::Catalog, Self::Queue, Self::Tickets, Self::Vwr];

    /// The roles that have public routes: the domains and the pages.
    pub(crate) const SERVING: &'static [Role] =
        &[Self::Auth, Self::Catalog, Self::Queue, Self::Site, Self::Tickets, Self::Vwr];

    /// The domains among which events travel both ways. The waiting room only listens to tickets; auth neither speaks nor listens.
    pub(crate) const TALKING: &'static [Role] = &[Self::Catalog, Self::Tickets];
}

/// The roles of this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roles(BTreeSet<Role>);

impl Roles {
    /// Everything that sells: the default.
    pub(crate) fn all() -> Self {
        Self(Role::ALL.iter().copied().filter(|role| *role != Role::Notices).collect())
    }

    /// Whether this process runs `role`.
    pub(crate) fn has(&self, role: Role) -> bool {
        self.0.contains(&role)
    }

    /// The domains among them.
    pub(crate) fn domains(&self) -> impl Iterator<Item = Role> {
        Role::DOMAINS.iter().copied().filter(|role| self.has(*role))
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
            f.write_str(role.name())?;
        }
        Ok(())
    }
}

impl Kind for Roles {
    type Value = Self;

    fn describe() -> String {
        format!("`all` (but `notices`), or a list of {}", Role::describe())
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self::all());
        }
        let roles = text
            .split(',')
            .map(|name| Role::parse(name.trim()).map_err(|wrong| format!("`{}` {wrong}", name.trim())))
            .collect::<Result<_, _>>()?;
        Ok(Self(roles))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_read_from_a_list_and_unknown_ones_are_named() {
        assert_eq!(Roles::parse("all"), Ok(Roles::all()));
        let some = Roles::parse("tickets, catalog").unwrap();
        assert!(some.has(Role::Tickets) && some.has(Role::Catalog) && !some.has(Role::Gateway));
        assert_eq!(some.to_string(), "catalog,tickets");
        assert!(Roles::parse("tickets,catalgo").unwrap_err().contains("did you mean `catalog`"));
        assert!(Roles::parse("").is_err());
    }

    #[test]
    fn only_domains_are_called_and_none_calls_itself() {
        for role in Role::ALL {
            assert!(!role.needs().contains(role));
            assert!(role.needs().iter().all(|needed| Role::DOMAINS.contains(needed)));
        }
    }
}
