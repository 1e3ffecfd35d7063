//! Additional checks of the `production` profile.

use urr_settings::Problems;

use super::{Config, Internal, Profile, Remote, Security};
use crate::domains::{auth, queue, tickets};

impl Config {
    /// In production no secret is generated, so every secret that is used must be configured.
    pub(super) fn check_production(&self, problems: &mut Problems<'_>) {
        if self.profile != Profile::Production {
            return;
        }
        if self.security.secret.is_none() {
            let info = const { Security::info("security.secret") };
            problems.missing(info, "profile = production generates no secrets");
        }
        if self.roles.has(&auth::ROLE) {
            self.check_accounts(problems);
        } else if self.remote.of(&auth::ROLE).is_none()
            && let Some(info) = Remote::info(&auth::ROLE)
        {
            let why = "profile = production must refuse tokens of revoked sessions, and this process does not run auth";
            problems.missing(info, why);
        }
        let sells_unguarded = self.roles.has(&tickets::ROLE) && !self.guards_seats();
        if sells_unguarded
            && !problems.is_set(const { urr_queue::Settings::info("queue.guard") })
            && let Some(info) = Remote::info(&queue::ROLE)
        {
            let why = "profile = production sells seats only to users whom the waiting room admitted, and this process \
                       does not run queue; or set queue.guard = false";
            problems.missing(info, why);
        }
        if self.internal.token.is_none() && self.talks_to_others() {
            let why = "profile = production generates no secrets and this process exchanges internal calls";
            problems.missing(const { Internal::info("internal.token") }, why);
        }
    }

    fn check_accounts(&self, problems: &mut Problems<'_>) {
        if self.auth.index_key.is_none() {
            let why = "profile = production generates no secrets and this process runs auth";
            problems.missing(const { urr_auth::Settings::info("auth.index_key") }, why);
        }
        if self.mail.smtp().is_none() {
            let why = "profile = production must deliver mails, which mail.kind = file does not; set mail.kind = smtp too";
            problems.missing(const { urr_mail::Settings::info("mail.smtp_server") }, why);
        }
    }
}
