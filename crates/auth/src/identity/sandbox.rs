//! Sandbox provider that confirms made-up identities: for development, tests and demos.

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use urr_contracts::auth::{Account, IdentitySource};
use urr_kernel::BirthDate;
use uuid::Uuid;

use super::provider::{Finding, IdentityProvider, Person, ProviderError, Window};

/// Prefix of every made-up identifier, so that it cannot be mistaken for a real one.
const MARK: &str = "SANDBOX";

/// Derives one person from name and phone number: two accounts with the same data are the same
/// person. An account without a phone number is a person of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sandbox;

#[async_trait]
impl IdentityProvider for Sandbox {
    fn window(&self) -> Window {
        Window { source: IdentitySource::Sandbox, store_id: None, channel_key: None }
    }

    async fn look_up(&self, _: Uuid, account: &Account) -> Result<Finding, ProviderError> {
        Ok(Finding::Verified(made_up(account)))
    }
}

fn made_up(account: &Account) -> Person {
    let apart = account.phone.clone().unwrap_or_else(|| account.id.to_string());
    let seed: [u8; 32] =
        Sha256::new().chain_update(&account.name).chain_update([0]).chain_update(apart).finalize().into();
    let number = |purpose: &str| {
        let hash = Sha256::new().chain_update(purpose).chain_update(seed).finalize();
        format!("{MARK}-{purpose}-{}", URL_SAFE_NO_PAD.encode(hash))
    };
    // 28 days are valid in every month; the latest year of birth is 2009.
    let (year, month, day) = (1960 + u16::from(seed[0]) % 50, 1 + seed[1] % 12, 1 + seed[2] % 28);
    let birth_date: BirthDate = format!("{year}-{month:02}-{day:02}").parse().expect("a valid date");
    Person {
        ci: number("CI"),
        di: Some(number("DI")),
        name: account.name.clone(),
        birth_date: Some(birth_date),
        phone: account.phone.clone(),
        gender: None,
        foreigner: Some(false),
    }
}

#[cfg(test)]
mod tests {
    use urr_contracts::auth::{AccountStatus, Language};
    use urr_kernel::{Clock, Role, UserId};

    use super::*;

    fn account(id: u128, name: &str, phone: Option<&str>) -> Account {
        Account {
            id: UserId::from_uuid(Uuid::from_u128(id)),
            email: "minji@example.com".to_owned(),
            email_verified: true,
            name: name.to_owned(),
            phone: phone.map(str::to_owned),
            role: Role::User,
            status: AccountStatus::Active,
            language: Language::Ko,
            marketing: false,
            second_factor: false,
            identity_verified_at: None,
            created_at: Clock::system().now(),
        }
    }

    #[test]
    fn a_name_and_a_phone_are_one_made_up_person_and_marked_as_such() {
        let minji = made_up(&account(1, "김민지", Some("+821012345678")));
        assert_eq!(minji, made_up(&account(2, "김민지", Some("+821012345678"))));
        assert_ne!(minji.ci, made_up(&account(1, "김민지", Some("+821012345679"))).ci);
        assert_ne!(minji.ci, made_up(&account(1, "하니", Some("+821012345678"))).ci);
        assert_ne!(made_up(&account(1, "김민지", None)).ci, made_up(&account(2, "김민지", None)).ci);
        assert!(minji.ci.starts_with(MARK) && minji.ci.len() < 88, "{}", minji.ci);
        assert_ne!(Some(minji.ci), minji.di);
    }

    #[test]
    fn a_person_is_not_printed() {
        let printed = format!("{:?}", Finding::Verified(made_up(&account(1, "김민지", None))));
        assert!(!printed.contains("김민지") && !printed.contains(MARK), "{printed}");
    }
}
