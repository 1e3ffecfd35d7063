//! How many files this process may have open, and how many connections that leaves room for. A process that runs out can accept nobody,
//! not even whoever asks whether it lives; so it turns connections away before.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::Config;

/// Listeners, the runtime, logs, the data directory, Redis, Kafka and the collector of traces: some dozens, and as many again for whoever
/// opens a few more.
const OTHERS: usize = 128;

/// A domain's SQLite file: one writer and eight readers, each with the file and its log, and the index of the log.
const SQLITE_FILES: usize = (1 + 8) * 2 + 1;

/// Raises the limit as far as this process may, and says how far that is.
pub(crate) fn raise() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // A system that refuses what it names itself leaves the limit as it was.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let allowed = getrlimit(Resource::Nofile).current;
    allowed.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX)
}

/// How many connections each listener may have with so many files: `http.max_connections`, or what fits.
pub(crate) fn connections(config: &Config, files: usize) -> usize {
    let each = if config.storage.is_sqlite() { SQLITE_FILES } else { config.storage.pool };
    let listeners = 1 + usize::from(config.internal.listen.is_some());
    let reserve = OTHERS + listeners * urr_http::MAX_REFUSALS + each * config.roles.domains().count();
    // A request that goes on to another process has a second connection there.
    let goes_on = config.passes_on().next().is_some() || config.needs_remote().next().is_some();
    let fit = files.saturating_sub(reserve) / listeners / (1 + usize::from(goes_on));
    fit.clamp(1, config.http.max_connections)
}

/// What to do about too few files, if there are.
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
        assert_eq!(connections(&embedded, 1_048_576), 16_000, "no more than was asked for");
        assert_eq!(connections(&embedded, 64), 1, "somebody can always ask");

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
    fn whoever_passes_requests_on_has_two_connections_for_each() {
        let front =
            of_env(&[("URR_ROLES", "gateway"), ("URR_UPSTREAM_CATALOG", "http://127.0.0.1:1")]).unwrap();
        assert_eq!(connections(&front, 4_096), (4_096 - 128 - 256) / 2);
    }

    #[test]
    fn too_few_files_are_told_with_what_to_do() {
        let embedded = of_env(&[("URR_HTTP_MAX_CONNECTIONS", "500")]).unwrap();
        assert_eq!(shortage(&embedded, 1_024), None);
        let told = shortage(&embedded, 512).unwrap();
        assert!(told.contains("512 files") && told.contains("LimitNOFILE") && told.contains("500"), "{told}");
    }
}
