//! Accounts through the public API, and the mails they get.

use std::{fs, path::Path, time::Duration};

use urr_testkit::until;

pub use urr_stampede::people::*;

/// Time limit for a mail: a reconciler writes it, nudged by the commit.
const MAIL: Duration = Duration::from_secs(30);

/// The token in the link of the newest mail to this address with a link to `page`. Waits for it.
pub async fn mailed(data_dir: &Path, to: &str, page: &str) -> String {
    let mut found = None;
    until(MAIL, async || {
        found = newest_link(data_dir, to, page);
        found.is_some()
    })
    .await;
    found.unwrap_or_default()
}

fn newest_link(data_dir: &Path, to: &str, page: &str) -> Option<String> {
    let mut mails: Vec<_> =
        fs::read_dir(data_dir.join("mail")).ok()?.flatten().map(|mail| mail.path()).collect();
    mails.sort();
    let texts = mails.iter().rev().filter_map(|path| fs::read_to_string(path).ok());
    let mut texts = texts.filter(|text| text.starts_with(&format!("To: {to}\r\n")));
    texts.find_map(|text| {
        let (_, rest) = text.split_once(&format!("{page}#token="))?;
        Some(rest.split_whitespace().next()?.to_owned())
    })
}
