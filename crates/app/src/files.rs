//! The limit of open files, and how many connections fit into it. A process without file
//! descriptors cannot even answer health checks, so it refuses connections before it runs out.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Listeners, the runtime, logs, the data directory, Redis, Kafka and the trace collector: some
/// dozens, doubled as a reserve.
const OTHERS: usize = 128;

/// Per SQLite database: one writer and eight readers, each with the file and its WAL, and one
/// shared memory file.
const SQLITE_FILES: usize = (1 + 8) * 2 + 1;

/// Raises the soft limit to the hard limit. Returns the limit in effect.
pub(crate) fn raise() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // On failure the limit stays as it was; it is read again below.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX)
}

/// Connections per listener: `http.max_connections`, or fewer if `files` does not suffice.
pub(crate) fn connections(config: &Config, files: usize) -> usize {
    let each = if config.storage.is_sqlite() { SQLITE_FILES } else { config.storage.pool };
    let listeners = 1 + usize::from(config.internal.listen.is_some());
    let reserve = OTHERS + listeners * urr_http::MAX_REFUSALS + each * config.roles.domains().count();
    // A request that is forwarded to another process uses a second connection.
    let goes_on = config.passes_on().next().is_some() || config.needs_remote().next().is_some();
    let fit = files.saturating_sub(reserve) / listeners / (1 + usize::from(goes_on));
    fit.clamp(1, config.http.max_connections)
}

/// The warning if the limit of open files is too low for `http.max_connections`.
pub(crate) fn shortage(config: &Config, files: usize) -> Option<String> {
    let (fit, wanted) = (connections(config, files), config.http.max_connections);
    (fit < wanted).then(|| {
        format!(
            "{files} files may be open, which leaves room for {fit} connections and not for {wanted}; raise the limit \
             (`ulimit -Hn`, LimitNOFILE in systemd) or lower http.max_connections"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::of_env;

    #[test]
    fn connections_leave_room_for_everything_else() {
        let embedded = of_env(&[]).unwrap();
        let domains = embedded.roles.domains().count();
        assert_eq!(connections(&embedded, 1_024), 1_024 - 128 - 256 - 19 * domains);
        assert_eq!(connections(&embedded, 1_048_576), 16_000, "no more than http.max_connections");
        assert_eq!(connections(&embedded, 64), 1, "at least one connection");

        let servers = of_env(&[
            ("URR_STORAGE_KIND", "postgres"),
            ("URR_STORAGE_URL", "postgres://urr@localhost/urr"),
            ("URR_INTERNAL_LISTEN", "127.0.0.1:0"),
        ])
        .unwrap();
        let left = 4_096 - 128 - 2 * 256 - 16 * domains;
        assert_eq!(connections(&servers, 4_096), left / 2, "two listeners");
    }

    #[test]
    fn a_forwarded_request_counts_as_two_connections() {
        let front =
            of_env(&[("URR_ROLES", "gateway"), ("URR_UPSTREAM_CATALOG", "http://127.0.0.1:1")]).unwrap();
        assert_eq!(connections(&front, 4_096), (4_096 - 128 - 256) / 2);
    }

    #[test]
    fn a_shortage_of_files_names_the_remedy() {
        let embedded = of_env(&[("URR_HTTP_MAX_CONNECTIONS", "500")]).unwrap();
        assert_eq!(shortage(&embedded, 1_024), None);
        let warning = shortage(&embedded, 512).unwrap();
        assert!(
            warning.contains("512 files") && warning.contains("LimitNOFILE") && warning.contains("500"),
            "{warning}"
        );
    }
}
