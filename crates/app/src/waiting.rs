//! The page of the site waiting room for other hosts.

use std::{fs, path::Path};

use crate::{failure::Failure, say::say};

/// Writes the waiting page, for a CDN or another host.
pub(crate) fn export(file: Option<&Path>, api: &str) -> Result<(), Failure> {
    let Some(page) = urr_vwr::export(api) else {
        let hint =
            "--api must be a path on the page's own site, such as /vwr-api, which the CDN forwards to urr";
        return Err(Failure::new(format!("{hint}: browsers do not send the visitor cookie to another site")));
    };
    let Some(file) = file else {
        say!("{}", page.trim_end());
        return Ok(());
    };
    let failed = |error| Failure::because(format!("{} cannot be written", file.display()), &error);
    fs::write(file, page).map_err(failed)?;
    say!("wrote {}; let the CDN serve it at /vwr/* and forward {api}/* to urr", file.display());
    Ok(())
}
