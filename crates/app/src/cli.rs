//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use urr_kernel::UserId;

use urr_stampede::{bench::BenchCommand, crowd::StampedeArgs};

use crate::{
    config::{Flag, nearest},
    roles::Role,
};

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "urr",
    version,
    about = "URR sells concert tickets when a million people come at once.",
    long_about = "URR (우르르, the sound of a crowd rushing in) sells concert tickets when a million people come at once.\n\n\
                  Without a command and without configuration it serves everything at http://localhost:3001 and stores \
                  its data in ./urr-data.",
    after_help = "Every setting is also an environment variable (listen is URR_LISTEN, sale.hold_secs is \
                  URR_SALE_HOLD_SECS).\ndocs/config.md lists them all; `urr check-config` shows the ones in effect."
)]
pub(crate) struct Cli {
    /// The command; `serve` if omitted.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Settings.
    #[command(flatten)]
    pub flags: Flags,
}

/// Settings given as flags, before or after the command.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Flags {
    /// The configuration file.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        help = "The configuration file [env: URR_CONFIG] [default: ./urr.toml if it exists]"
    )]
    pub config: Option<PathBuf>,
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS:PORT",
        help = "Address of the public API [env: URR_LISTEN] [default: 127.0.0.1:3001]"
    )]
    listen: Option<String>,
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help = "Directory of databases and other files [env: URR_DATA_DIR] [default: ./urr-data]"
    )]
    data_dir: Option<String>,
    #[arg(
        long,
        global = true,
        value_name = "ROLES",
        help = roles_help()
    )]
    roles: Option<String>,
    /// Set any setting by its key, such as `sale.hold_secs=120`; can be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl Flags {
    /// The settings among the flags, as input of the configuration.
    pub(crate) fn settings(&self) -> Vec<Flag> {
        let named = [
            ("--listen", "listen", &self.listen),
            ("--data-dir", "data_dir", &self.data_dir),
            ("--roles", "roles", &self.roles),
        ];
        let named = named.into_iter().filter_map(|(name, key, value)| {
            let value = value.clone()?;
            Some(Flag { name: name.to_owned(), key: key.to_owned(), value })
        });
        let set = self.set.iter().map(|(key, value)| Flag {
            name: format!("--set {key}"),
            key: key.clone(),
            value: value.clone(),
        });
        named.chain(set).collect()
    }
}

/// The commands of `urr`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the roles of this process until SIGTERM or Ctrl-C
    Serve,
    /// Migrate every database of this process to this version's schema
    ///
    /// With SQLite the files in the data directory are migrated, which `urr serve` also does at
    /// start. With PostgreSQL the login of `storage.admin_url` (or `storage.url`) creates one role
    /// and one schema per domain, gives each role access to its own schema only, and migrates them.
    /// Running it again changes nothing.
    Migrate,
    /// Print the effective configuration, the source of each value, and every problem in it
    CheckConfig,
    /// Check every configured store and remote role, one line each; exit 1 if a check fails
    Doctor,
    /// Create an access token signed with this installation's key, for scripts and tests
    Token(TokenArgs),
    /// Create the first administrator, import accounts, reset a second factor
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Verify that the waiting room of an event (Tier 2) was fair
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Show messages that wait or failed, and publish failed ones again
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Show mails that wait or failed, and send failed ones again
    #[command(subcommand)]
    Mails(MailsCommand),
    /// Run benchmarks on this machine: one table, with a baseline from the same run
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Simulate a crowd on a temporary server, and verify that its waiting room was fair
    #[command(subcommand)]
    Stampede(StampedeCommand),
    /// Export the page of the site waiting room (Tier 1)
    #[command(subcommand)]
    Vwr(VwrCommand),
    /// Print the reference of all settings
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the version
    Version,
}

/// The user and the lifetime of a token.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The user's id
    #[arg(long, value_name = "UUID")]
    pub user: UserId,
    /// Role of the user
    #[arg(long, value_enum, default_value_t = TokenRole::User)]
    pub role: TokenRole,
    /// Lifetime of the token: 90s, 15m, 1h, 7d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    pub ttl: Duration,
}

/// The role in a token.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TokenRole {
    /// Can buy tickets.
    User,
    /// Can use the admin API.
    Admin,
}

/// Commands for administrators and accounts.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Create the first administrator; refused if there is one
    ///
    /// Prints a generated password once, unless one is given. With SQLite, stop the server first.
    Create {
        /// The administrator's e-mail address
        #[arg(long, value_name = "ADDRESS")]
        email: String,
        /// The administrator's name
        #[arg(long, default_value = crate::admin::NAME)]
        name: String,
        /// Read the password from the first line of standard input
        #[arg(long)]
        password_stdin: bool,
        /// Promote the existing account with this address; it keeps its password, so verify its
        /// owner first
        #[arg(long, conflicts_with = "password_stdin")]
        promote: bool,
    },
    /// Import accounts from another system with their password hashes (bcrypt or Argon2id)
    ///
    /// All lines are checked first; if one is invalid, nothing is imported. An address that has an
    /// account is skipped, so the same file can be imported again. With SQLite, stop the server
    /// first.
    Import {
        /// One JSON object per line: email, name, passwordHash; optional: phone, emailVerified
        #[arg(value_name = "FILE")]
        file: std::path::PathBuf,
    },
    /// Remove the second factor of an account whose owner lost it, and end its sessions
    ///
    /// Verify the owner's identity first: afterwards the password alone is enough. With SQLite,
    /// stop the server first.
    ResetSecondFactor {
        /// The account's e-mail address
        #[arg(value_name = "ADDRESS")]
        email: String,
    },
}

/// Commands for event waiting rooms.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Replay the journal of an event's room and report overtaking, an exceeded threshold and
    /// duplicate entries
    ///
    /// Exits with 1 if it finds a violation and with 2 if it cannot verify. With SQLite, stop the
    /// server first.
    Verify {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: urr_kernel::EventId,
    },
}

/// The simulated crowds.
#[derive(Debug, Subcommand)]
pub(crate) enum StampedeCommand {
    /// A crowd in front of one event: fans join the queue, poll, are admitted and leave
    ///
    /// Starts `urr serve` on loopback with temporary files, sends real requests, and finishes with
    /// `urr queue verify`. The server's wall clock runs faster, so hours of waiting take minutes.
    Queue(StampedeArgs),
}

/// Commands for the outbox.
#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// Per domain: how many messages wait, since when, and how many are dead letters
    Status,
    /// List dead letters: id, topic, kind and error
    Dead {
        /// Only this domain
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
        /// Maximum per domain
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
    },
    /// Publish dead letters again
    Republish {
        /// Only this domain
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
        /// Only this message; all of them if omitted
        #[arg(long, value_name = "MESSAGE")]
        id: Option<urr_kernel::MessageId>,
    },
}

/// Commands for mails. With SQLite no other process may use the data directory.
#[derive(Debug, Subcommand)]
pub(crate) enum MailsCommand {
    /// Per domain: how many mails wait, since when, and how many failed
    Status,
    /// List waiting mails: id, domain, kind, state, attempts, times, last error
    List {
        /// List failed mails instead
        #[arg(long)]
        failed: bool,
        /// Only this domain
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
        /// Maximum per domain
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
    },
    /// Queue failed mails again, with all attempts
    Retry {
        /// Only this mail; all failed mails if omitted
        #[arg(value_name = "MAIL")]
        id: Option<uuid::Uuid>,
        /// Only this domain
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
    },
}

/// Commands for the site waiting room (Tier 1).
#[derive(Debug, Subcommand)]
pub(crate) enum VwrCommand {
    /// Write the waiting page, for a bucket or CDN that serves it at /vwr/*
    Export {
        /// Output file; standard output if omitted
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Path on the page's own site at which browsers reach the API of the waiting room
        #[arg(long, value_name = "PATH", default_value = "/vwr-api")]
        api: String,
    },
}

/// Commands for the configuration reference.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print docs/config.md
    Docs,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("it must be KEY=VALUE, such as sale.hold_secs=120")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

fn domain(text: &str) -> Result<Role, String> {
    Role::domains().find(|role| role.name == text).ok_or_else(|| {
        let names: Vec<_> = Role::domains().map(|role| role.name).collect();
        let meant = nearest(text, names.iter().copied()).map(|name| format!("; did you mean {name}?"));
        format!("the domains are {}{}", names.join(", "), meant.unwrap_or_default())
    })
}

/// The longest lifetime of a token: a month. A script that runs longer should create a new one.
const MAX_TTL: Duration = Duration::from_hours(31 * 24);

fn span(text: &str) -> Result<Duration, String> {
    const WANTED: &str = "it must be a number and a unit: 90s, 15m, 1h, 7d";
    let unit = text.chars().last().ok_or(WANTED)?;
    let number: u64 = text.strip_suffix(unit).and_then(|number| number.parse().ok()).ok_or(WANTED)?;
    let secs = match unit {
        's' => 1,
        'm' => 60,
        'h' => 60 * 60,
        'd' => 24 * 60 * 60,
        _ => return Err(WANTED.to_owned()),
    };
    match number.checked_mul(secs).map(Duration::from_secs) {
        Some(span) if !span.is_zero() && span <= MAX_TTL => Ok(span),
        _ => Err("it must be between 1s and 31d".to_owned()),
    }
}

fn roles_help() -> String {
    let names: Vec<&str> = Role::all().map(|role| role.name).collect();
    let names = names.join(", ");
    format!(
        "Roles of this process: all (except notices), or a list of {names} [env: URR_ROLES] [default: all]"
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_are_accepted_before_and_after_the_command() {
        for line in [
            "urr --listen 127.0.0.1:1 serve --set demo=false",
            "urr serve --set demo=false --listen 127.0.0.1:1",
        ] {
            let cli = Cli::try_parse_from(line.split(' ')).unwrap();
            let settings = cli.flags.settings();
            assert!(matches!(cli.command, Some(Command::Serve)));
            assert_eq!(settings.len(), 2);
            assert_eq!((settings[0].key.as_str(), settings[0].value.as_str()), ("listen", "127.0.0.1:1"));
            assert_eq!(settings[1].name, "--set demo");
        }
        assert!(Cli::try_parse_from(["urr"]).unwrap().command.is_none());
    }

    #[test]
    fn durations_need_a_unit_and_have_a_maximum() {
        assert_eq!(span("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(span("31d"), Ok(MAX_TTL));
        for wrong in
            ["", "1", "h", "0s", "32d", "1시", "-1s", "99999999999999999999d", "18446744073709551615d"]
        {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_domain_is_refused_with_a_suggestion() {
        assert_eq!(domain("tickets"), Ok(Role::of(&crate::domains::tickets::ROLE)));
        let said = domain("ticket").unwrap_err();
        assert!(said.starts_with("the domains are auth, catalog,"), "{said}");
        assert!(said.ends_with("; did you mean tickets?"), "{said}");
        assert!(domain("gateway").is_err());
    }
}
