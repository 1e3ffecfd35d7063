//! What the profile `production` asks for beyond a configuration that fits together.

use super::{Config, Profile, resolve::Problems, settings as s};
use crate::roles::Role;

impl Problems<'_> {
    /// In production nothing is made up, so everything secret that is used must have been configured.
    pub(super) fn production(&mut self, config: &Config) {
        if config.profile != Profile::Production {
            return;
        }
        if config.secret.is_none() {
            self.missing(&s::SECURITY_SECRET.info, "profile = production makes up no secrets");
        }
        if config.auth.index_key.is_none() && config.roles.has(Role::Auth) {
            let why = "profile = production makes up no secrets and this process has accounts";
            self.missing(&s::AUTH_INDEX_KEY.info, why);
        }
        if config.smtp.is_none() && config.roles.has(Role::Auth) {
            let why =
                "profile = production brings mails to people, which files do not; set mail.kind = smtp too";
            self.missing(&s::MAIL_SMTP_SERVER.info, why);
        }
        if config.remote.auth.is_none() && !config.roles.has(Role::Auth) {
            let why = "profile = production accepts no token of a session that ended, and this process does not run auth";
            self.missing(&s::REMOTE_AUTH.info, why);
        }
        let sells_to_anybody = config.roles.has(Role::Tickets) && !config.queue.guard;
        if sells_to_anybody && !self.values.is_set(&s::QUEUE_GUARD.info) {
            let why = "profile = production sells seats only to those whom the waiting room let in, and this process does \
                       not run queue; or set queue.guard = false";
            self.missing(&s::REMOTE_QUEUE.info, why);
        }
        if config.internal_token.is_none() && config.talks_to_others() {
            let why = "profile = production makes up no secrets and this process talks to others";
            self.missing(&s::INTERNAL_TOKEN.info, why);
        }
    }
}
