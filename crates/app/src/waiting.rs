//! The page of the site waiting room for other hosts.

use std::{fs, path::Path};

use crate::{failure::Failure, say::say};

/// Writes the page on which one waits for another host.
pub(crate) fn export(file: Option<&Path>, api: &str) -> Result<(), Failure> {
    let Some(page) = urr_vwr::export(api) else {
        let hint = "--api is a path of the page's own site, such as /vwr-api; let the CDN pass it on";
        return Err(Failure::new(format!(
            "{hint}: browsers do not send the cookies of a place to another one"
        )));
    };
    let Some(file) = file else {
        say!("{}", page.trim_end());
        return Ok(());
    };
    let failed = |error| Failure::because(format!("{} cannot be written", file.display()), &error);
    fs::write(file, page).map_err(failed)?;
    say!("{} is written; let a CDN answer /vwr/* with it and pass {api}/* on to urr", file.display());
    Ok(())
}
