//! Settings that are one of a few words.

use super::kinds::choice;

choice! {
    /// How careful the process is about how it was set up.
    pub(crate) enum Profile {
        /// Makes its own secrets and demo data: for a laptop, a test or a small hall.
        Local = "local",
        /// Refuses to start unless its secrets were configured, and never seeds demo data.
        Production = "production",
    }
}

choice! {
    /// Which SQL engine holds the truth.
    pub(crate) enum StorageKind {
        /// Files in the data directory.
        Sqlite = "sqlite",
        /// A PostgreSQL server.
        Postgres = "postgres",
    }
}

choice! {
    /// How events travel between roles.
    pub(crate) enum BusKind {
        /// The outbox tables are the log; nothing leaves the process.
        InProcess = "in_process",
        /// Kafka brokers.
        Kafka = "kafka",
    }
}

choice! {
    /// Where the places of Tier 1 are counted.
    pub(crate) enum CountersKind {
        /// In Redis if there is one, else in memory.
        Auto = "auto",
        /// In a table of DynamoDB.
        DynamoDb = "dynamodb",
    }
}

choice! {
    /// Where mails go.
    pub(crate) enum MailKind {
        /// Into a folder of the data directory.
        File = "file",
        /// To a mail server.
        Smtp = "smtp",
    }
}

choice! {
    /// How the connection to a mail server is protected.
    pub(crate) enum SmtpProtection {
        /// TLS from the first byte.
        Tls = "tls",
        /// TLS before anything is said.
        StartTls = "starttls",
        /// Nothing.
        Plain = "plain",
    }
}

choice! {
    /// The header in which trusted proxies say where a request came from.
    pub(crate) enum ForwardedName {
        /// What most of them write.
        XForwardedFor = "x-forwarded-for",
        /// RFC 7239.
        Forwarded = "forwarded",
    }
}

choice! {
    /// Who vouches for persons.
    pub(crate) enum IdentityKind {
        /// Nobody: identities are not verified.
        Off = "off",
        /// Made-up persons.
        Sandbox = "sandbox",
        /// PortOne.
        Portone = "portone",
    }
}

choice! {
    /// Whether administrators need a second factor.
    pub(crate) enum SecondFactor {
        /// They may have one.
        Off = "off",
        /// They are administrators only with one.
        Required = "required",
    }
}

choice! {
    /// What log lines look like.
    pub(crate) enum LogFormat {
        /// For a person at a terminal.
        Pretty = "pretty",
        /// One JSON object per line, for a collector.
        Json = "json",
    }
}
