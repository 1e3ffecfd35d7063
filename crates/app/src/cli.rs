//! The command line.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use urr_kernel::UserId;

use urr_stampede::{bench::BenchCommand, crowd::StampedeArgs};

use crate::{
    config::{Flag, nearest},
    roles::Role,
};

/// What was typed.
#[derive(Debug, Parser)]
#[command(
    name = "urr",
    version,
    about = "URR sells concert tickets when a million people come at once.",
    long_about = "URR (우르르, the sound of a crowd rushing in) sells concert tickets when a million people come at once.\n\n\
                  Without a command and without configuration it serves everything at http://localhost:3001 and keeps \
                  its data in ./urr-data.",
    after_help = "Every setting is also an environment variable (listen is URR_LISTEN, sale.hold_secs is \
                  URR_SALE_HOLD_SECS).\ndocs/config.md lists them all; `urr check-config` shows the ones in effect."
)]
pub(crate) struct Cli {
    /// What to do; serve when left out.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Settings.
    #[command(flatten)]
    pub flags: Flags,
}

/// Settings given on the command line. They may stand before or after the command.
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
        help = "Where the public API listens [env: URR_LISTEN] [default: 127.0.0.1:3001]"
    )]
    listen: Option<String>,
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help = "Where files are kept [env: URR_DATA_DIR] [default: ./urr-data]"
    )]
    data_dir: Option<String>,
    #[arg(
        long,
        global = true,
        value_name = "ROLES",
        help = "What this process runs: all (but notices), or a list of auth, catalog, gateway, notices, queue, site, tickets, vwr [env: URR_ROLES] [default: all]"
    )]
    roles: Option<String>,
    /// Any setting by its key, such as `sale.hold_secs=120`; may be repeated
    #[arg(long, global = true, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl Flags {
    /// The settings among the flags, in the form the configuration takes them.
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

/// What `urr` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the roles of this process until told to stop
    Serve,
    /// Bring every database of this process to this version's schema
    ///
    /// With SQLite the files in the data directory are migrated, which `urr serve` also does by itself. With PostgreSQL the
    /// login of `storage.admin_url` (or `storage.url`) creates one role and one schema per domain, grants each domain its own
    /// schema and nothing else, and migrates them. Running it again changes nothing.
    Migrate,
    /// Print the effective configuration, where each value came from, and everything that is wrong with it
    CheckConfig,
    /// Ask every configured store whether it is well, one line each; exit 1 if one is not
    Doctor,
    /// Make an access token with this installation's key, for scripts and tests
    Token(TokenArgs),
    /// Look after those who run the platform
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Look into waiting rooms
    #[command(subcommand)]
    Queue(QueueCommand),
    /// Look after events that wait to be published
    #[command(subcommand)]
    Outbox(OutboxCommand),
    /// Show mails that wait or failed, and send failed ones again
    #[command(subcommand)]
    Mails(MailsCommand),
    /// Measure this machine: one table, with a baseline from the same run
    #[command(subcommand)]
    Bench(BenchCommand),
    /// Let a crowd loose on a server of its own, and prove that it was fair
    #[command(subcommand)]
    Stampede(StampedeCommand),
    /// Look after the line in front of everything
    #[command(subcommand)]
    Vwr(VwrCommand),
    /// Facts about the configuration itself
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print the version
    Version,
}

/// Whose token, and for how long.
#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    /// The user's id
    #[arg(long, value_name = "UUID")]
    pub user: UserId,
    /// What the user may do
    #[arg(long, value_enum, default_value_t = TokenRole::User)]
    pub role: TokenRole,
    /// How long the token is good: 90s, 15m, 1h, 7d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = span)]
    pub ttl: Duration,
}

/// What the bearer of a token may do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TokenRole {
    /// Buys tickets.
    User,
    /// Runs the platform.
    Admin,
}

/// What can be done about administrators and accounts.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Make the first administrator, or make an account the first administrator; refused when there is one
    ///
    /// Prints a generated password once, unless one is given. With SQLite no other process may use the data directory.
    Create {
        /// The administrator's e-mail address
        #[arg(long, value_name = "ADDRESS")]
        email: String,
        /// What to call them
        #[arg(long, default_value = crate::admin::NAME)]
        name: String,
        /// Read the password from the first line of standard input
        #[arg(long)]
        password_stdin: bool,
        /// Make the account that has the address already the administrator; it keeps its password, so make sure whose it is
        #[arg(long, conflicts_with = "password_stdin")]
        promote: bool,
    },
    /// Import accounts of another system with the hashes of their passwords, bcrypt or Argon2id
    ///
    /// All lines are checked first, and if one is wrong nothing is imported. An address that has an account is skipped, so the same file
    /// may be imported again. With SQLite no other process may use the data directory.
    Import {
        /// One JSON object per line: email, name, passwordHash, and if known phone and emailVerified
        #[arg(value_name = "FILE")]
        file: std::path::PathBuf,
    },
    /// Take the second factor off an account whose owner lost it, and end its sessions
    ///
    /// Make sure who asks: from then on the password alone is enough. With SQLite no other process may use the data directory.
    ResetSecondFactor {
        /// The account's e-mail address
        #[arg(value_name = "ADDRESS")]
        email: String,
    },
}

/// What can be done about waiting rooms.
#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Replay the journal of an event's room and report any overtaking, any instant above the threshold, any double place
    ///
    /// Exits with 1 if it finds something and with 2 if it cannot tell. With SQLite no other process may use the data directory.
    Verify {
        /// The event's id
        #[arg(value_name = "EVENT")]
        event: urr_kernel::EventId,
    },
}

/// Where a crowd can be let loose.
#[derive(Debug, Subcommand)]
pub(crate) enum StampedeCommand {
    /// Everybody wants into one event: they join, wait as long as they are told, come in, and go
    ///
    /// Starts `urr serve` on loopback with files that are removed afterwards, sends every request for real, and ends with the
    /// proof of `urr queue verify`. The server's wall clock runs faster, so that hours of waiting take minutes.
    Queue(StampedeArgs),
}

/// What can be done about the outbox.
#[derive(Debug, Subcommand)]
pub(crate) enum OutboxCommand {
    /// How many events wait, since when, and how many died, per domain
    Status,
    /// The events that died: what they were and why
    Dead {
        /// Only this domain's
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
        /// At most so many per domain
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
    },
    /// Send dead events once more
    Republish {
        /// Only this domain's
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
        /// Only this event; all of them when left out
        #[arg(long, value_name = "MESSAGE")]
        id: Option<urr_kernel::MessageId>,
    },
}

/// What can be done about mails. With SQLite no other process may use the data directory.
#[derive(Debug, Subcommand)]
pub(crate) enum MailsCommand {
    /// How many mails wait, since when, and how many failed, per domain
    Status,
    /// The mails that wait, one per line: id, domain, kind, state, attempts, times, last error
    List {
        /// The mails that failed instead
        #[arg(long)]
        failed: bool,
        /// Only this domain's
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
        /// At most so many per domain
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
        limit: u32,
    },
    /// Queue failed mails again, with all their attempts
    Retry {
        /// Only this mail; all that failed when left out
        #[arg(value_name = "MAIL")]
        id: Option<uuid::Uuid>,
        /// Only this domain's
        #[arg(long, value_parser = domain)]
        domain: Option<Role>,
    },
}

/// What can be done about Tier 1 of the waiting room.
#[derive(Debug, Subcommand)]
pub(crate) enum VwrCommand {
    /// Write the page on which one waits, for a bucket or a CDN that answers /vwr/* with it
    Export {
        /// Where to; standard output when left out
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        /// Where browsers reach the routes of the waiting room: a path of the page's own site
        #[arg(long, value_name = "PATH", default_value = "/vwr-api")]
        api: String,
    },
}

/// Facts about the configuration.
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

/// The longest token: a month. A script that needs more should ask for a new one.
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed_and_lists_every_role() {
        Cli::command().debug_assert();
        let help = Cli::command().render_long_help().to_string();
        for role in Role::all() {
            assert!(help.contains(role.name), "--roles does not mention {}", role.name);
        }
    }

    #[test]
    fn flags_may_stand_before_or_after_the_command() {
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
    fn spans_have_a_unit_and_a_limit() {
        assert_eq!(span("1h"), Ok(Duration::from_hours(1)));
        assert_eq!(span("31d"), Ok(MAX_TTL));
        for wrong in
            ["", "1", "h", "0s", "32d", "1시", "-1s", "99999999999999999999d", "18446744073709551615d"]
        {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_unknown_domain_is_refused_with_the_nearest() {
        assert_eq!(domain("tickets"), Ok(Role::of(&crate::domains::tickets::ROLE)));
        assert_eq!(
            domain("ticket").unwrap_err(),
            "the domains are auth, catalog, queue, tickets, vwr; did you mean tickets?"
        );
        assert!(domain("gateway").is_err());
    }
}
