//! Java servers: the installed java, and jars from Maven Central, downloaded once.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

use anyhow::{Context as _, Result, bail};

use crate::{
    ambient,
    command::{find, output},
};

/// C1 alone halves the JVM's start time; no test runs long enough to benefit from C2.
const JVM: [&str; 4] = ["-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
const OLDEST_JAVA: u32 = 17;

/// A jar on Maven Central: group, artifact, version. Dependencies are downloaded with it.
pub(super) type Jar<'a> = (&'a str, &'a str, &'a str);

/// An installed java of a supported version.
pub(super) fn program() -> Result<PathBuf> {
    let java = find("java").context("java is not installed")?;
    let output = Command::new(&java).arg("-version").output().context("cannot run java")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    match version(&said) {
        Some(version) if version >= OLDEST_JAVA => Ok(java),
        Some(version) => bail!("Java {OLDEST_JAVA} is needed, this is Java {version}"),
        None => bail!("cannot read the version in: {said}"),
    }
}

/// The start of a command line: java with these jars, in `home`.
pub(super) fn jvm(java: &Path, jars: &Path, home: &Path) -> Command {
    let mut command = Command::new(java);
    command.current_dir(home).args(JVM).arg("-cp").arg(format!("{}/*", jars.display()));
    command
}

/// The major version in `openjdk version "17.0.15" 2025-04-15`.
fn version(said: &str) -> Option<u32> {
    let (_, quoted) = said.split_once('"')?;
    quoted.split(['.', '"', '-']).next()?.parse().ok()
}

/// The folder with the jars of a server, downloaded once. `name` identifies server and version.
pub(super) fn jars(name: &str, wanted: &[Jar<'_>]) -> Result<PathBuf> {
    // Servers start concurrently, and concurrent Maven processes can corrupt each other's
    // downloads.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = ambient::root().join("target/services").join(name);
    let ready = cache.join("jars");
    if ready.exists() {
        return Ok(ready);
    }
    // Downloaded under a temporary name and renamed, so that an interrupted download is not used.
    let partial = cache.join(format!("fetching-{}", std::process::id()));
    fs::create_dir_all(&partial)?;
    let pom = partial.join("pom.xml");
    fs::write(&pom, pom_xml(wanted))?;
    let mut fetch = Command::new(find("mvn").context("Maven's mvn is not installed")?);
    fetch.args(["--quiet", "--batch-mode", "dependency:copy-dependencies", "-DincludeScope=runtime"]);
    fetch.arg("--file").arg(&pom).arg(format!("-DoutputDirectory={}", partial.join("jars").display()));
    let fetched = output(&mut fetch).with_context(|| format!("cannot fetch the jars of {name}"));
    let kept = fetched.and_then(|_| match fs::rename(partial.join("jars"), &ready) {
        // A concurrent run may have finished first; its jars are identical.
        Err(error) if !ready.exists() => Err(error.into()),
        _ => Ok(()),
    });
    fs::remove_dir_all(&partial)?;
    kept.map(|()| ready)
}

fn pom_xml(wanted: &[Jar<'_>]) -> String {
    let dependencies: Vec<String> = wanted
        .iter()
        .map(|(group, artifact, version)| {
            format!(
                "<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>\
                 <version>{version}</version></dependency>"
            )
        })
        .collect();
    format!(
        "<project xmlns=\"http://maven.apache.org/POM/4.0.0\"><modelVersion>4.0.0</modelVersion>\
         <groupId>urr</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>\
         <dependencies>{}</dependencies></project>",
        dependencies.concat()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_new_java_version_formats_are_parsed() {
        assert_eq!(version("openjdk version \"17.0.15\" 2025-04-15"), Some(17));
        assert_eq!(version("openjdk version \"21\" 2023-09-19"), Some(21));
        assert_eq!(version("java version \"1.8.0_292\""), Some(1));
        assert_eq!(version("not java"), None);
    }
}
