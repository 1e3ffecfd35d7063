//! The settings of what is kept and told on AWS.

use std::time::Duration;

use super::{Problem, choices::CountersKind, resolve::Problems, settings as s};
use crate::roles::Role;

/// Where a service of AWS is.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "it is checked, and then nobody uses it"))]
pub(crate) struct AwsPlace {
    /// Such as `ap-northeast-2`.
    pub region: String,
    /// What stands in for AWS's own servers.
    pub endpoint: Option<String>,
    /// How long one call may take.
    pub deadline: Duration,
}

/// Where the places of Tier 1 are counted.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "it is checked, and then nobody uses it"))]
pub(crate) enum Counting {
    /// In Redis if there is one, else in this process.
    Near,
    /// In a table of DynamoDB.
    DynamoDb {
        /// Where DynamoDB is.
        place: AwsPlace,
        /// What the table's name begins with.
        prefix: String,
    },
}

/// The queue that is told of admissions.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "aws"), expect(dead_code, reason = "it is checked, and then nobody uses it"))]
pub(crate) struct Notices {
    /// Where SQS is.
    pub place: AwsPlace,
    /// Which queue of it.
    pub url: String,
}

impl Problems<'_> {
    /// The queue that is told of admissions, if there is one.
    pub(super) fn notices(&mut self) -> Option<Notices> {
        let endpoint = self.values.get(&s::AWS_SQS_ENDPOINT).map(|url| url.expose().to_owned());
        let Some(url) = self.values.get(&s::QUEUE_NOTICES_URL).map(|url| url.expose().to_owned()) else {
            self.stray(
                &s::AWS_SQS_ENDPOINT.info,
                "is only for queue.notices_url; set that too, or remove it",
            );
            if self.values.get(&s::ROLES).has(Role::Notices) {
                self.missing(&s::QUEUE_NOTICES_URL.info, "the role notices reads it");
            }
            return None;
        };
        if url.strip_suffix(".fifo").is_none() {
            self.stray(&s::QUEUE_NOTICES_URL.info, "is no FIFO queue, whose name ends with .fifo");
        }
        Some(Notices { place: self.aws(endpoint, "queue.notices_url"), url })
    }

    /// Where the places of Tier 1 are counted.
    pub(super) fn counting(&mut self) -> Counting {
        if self.values.get(&s::VWR_COUNTERS) == CountersKind::Auto {
            for info in [&s::VWR_TABLE_PREFIX.info, &s::AWS_DYNAMODB_ENDPOINT.info] {
                self.stray(info, "is only for vwr.counters = dynamodb; set that too, or remove it");
            }
            return Counting::Near;
        }
        let prefix = self.values.get(&s::VWR_TABLE_PREFIX);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if !(1..=200).contains(&prefix.len()) || !prefix.bytes().all(is_plain) {
            self.stray(
                &s::VWR_TABLE_PREFIX.info,
                "may have 200 letters, digits, hyphens, dots and underscores",
            );
        }
        let endpoint = self.values.get(&s::AWS_DYNAMODB_ENDPOINT).map(|url| url.expose().to_owned());
        let place = self.aws(endpoint, "vwr.counters = dynamodb");
        Counting::DynamoDb { place, prefix }
    }

    /// Where a service of AWS is that `wanted` needs.
    fn aws(&mut self, endpoint: Option<String>, wanted: &str) -> AwsPlace {
        let region = self.values.get(&s::AWS_REGION);
        if region.is_none() {
            self.missing(&s::AWS_REGION.info, &format!("{wanted} needs it"));
        }
        if !cfg!(feature = "aws") {
            self.found.push(Problem(format!(
                "{wanted} is set, but this binary was built without the feature `aws`"
            )));
        }
        let deadline = Duration::from_millis(self.values.get(&s::AWS_DEADLINE_MS).get());
        AwsPlace { region: region.unwrap_or_default(), endpoint, deadline }
    }
}
