//! Settings from environment variables: a subset of those of `urr`, under the same names.

use std::{fmt, time::Duration};

use urr_aws::AwsConfig;
use urr_passes::Secret;

/// Default prefix of the table name.
const PREFIX: &str = "urr";

/// Settings of the function.
#[derive(Clone)]
pub struct Settings {
    /// The DynamoDB endpoint.
    pub aws: AwsConfig,
    /// Prefix of the table name.
    pub table_prefix: String,
    /// The secrets of the token keys; the first one signs.
    pub secrets: Vec<Secret>,
    /// The log filter.
    pub log_filter: String,
}

impl fmt::Debug for Settings {
    /// Prints the number of secrets, not their values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("aws", &self.aws)
            .field("table_prefix", &self.table_prefix)
            .field("secrets", &self.secrets.len())
            .finish_non_exhaustive()
    }
}

/// A missing or invalid variable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} {wrong}")]
pub struct BadSetting {
    variable: &'static str,
    wrong: String,
}

impl Settings {
    /// Reads the settings. `variable` returns the value of a variable that is set and not empty.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, BadSetting> {
        let secret = |name: &'static str, text: &str| {
            Secret::new(text).map_err(|error| BadSetting { variable: name, wrong: error.to_string() })
        };
        let name = "URR_SECURITY_SECRET";
        let newest = variable(name).ok_or(BadSetting { variable: name, wrong: "is not set".to_owned() })?;
        let mut secrets = vec![secret(name, &newest)?];
        let name = "URR_SECURITY_FORMER_SECRETS";
        for text in variable(name).iter().flat_map(|list| list.split(',')) {
            secrets.push(secret(name, text.trim())?);
        }
        let name = "URR_AWS_DEADLINE_MS";
        let deadline = match variable(name).map(|text| text.parse()) {
            None => AwsConfig::DEADLINE,
            Some(Ok(millis)) => Duration::from_millis(millis),
            Some(Err(_)) => {
                return Err(BadSetting {
                    variable: name,
                    wrong: "is not a number of milliseconds".to_owned(),
                });
            }
        };
        // Lambda sets AWS_REGION.
        let region = variable("URR_AWS_REGION").or_else(|| variable("AWS_REGION")).unwrap_or_default();
        Ok(Self {
            aws: AwsConfig { region, endpoint: variable("URR_AWS_DYNAMODB_ENDPOINT"), deadline },
            table_prefix: variable("URR_VWR_TABLE_PREFIX").unwrap_or_else(|| PREFIX.to_owned()),
            secrets,
            log_filter: variable("URR_LOG_FILTER").unwrap_or_else(|| "info".to_owned()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, BadSetting> {
        let found = |name: &str| variables.iter().find(|(known, _)| *known == name);
        Settings::read(|name| found(name).map(|(_, value)| (*value).to_owned()))
    }

    const SECRET: (&str, &str) = ("URR_SECURITY_SECRET", "a secret for tests, of more than 32 bytes");

    #[test]
    fn only_the_secret_is_required_on_lambda() {
        let settings = read(&[SECRET, ("AWS_REGION", "ap-northeast-2")]).unwrap();
        assert_eq!(settings.aws, AwsConfig::region("ap-northeast-2"));
        assert_eq!((settings.table_prefix.as_str(), settings.secrets.len()), ("urr", 1));
        assert!(!format!("{settings:?}").contains("32 bytes"));
    }

    #[test]
    fn errors_name_the_variable_but_not_its_value() {
        for (variables, expected) in [
            (&[][..], "URR_SECURITY_SECRET is not set"),
            (&[("URR_SECURITY_SECRET", "hunter2")][..], "URR_SECURITY_SECRET "),
            (&[SECRET, ("URR_SECURITY_FORMER_SECRETS", "hunter2")][..], "URR_SECURITY_FORMER_SECRETS "),
            (&[SECRET, ("URR_AWS_DEADLINE_MS", "soon")][..], "URR_AWS_DEADLINE_MS is not a number"),
        ] {
            let error = read(variables).unwrap_err().to_string();
            assert!(error.starts_with(expected) && !error.contains("hunter2"), "{error}");
        }
    }
}
