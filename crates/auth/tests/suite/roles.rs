//! Administrators, and access to user data.

use urr_contracts::auth::{
    DeleteAccount, EnsureAdmin, Error, MAX_USERS_PER_BATCH, Sensitive, SetRole, User, UsersOf,
};
use urr_kernel::{CommonError, Role, UserId};

use super::world::{PASSWORD, World, confirmed, home};

pub(crate) async fn only_admins_assign_roles_which_ends_the_users_sessions(world: &World) {
    let (admin, user) = (world.admin().await, world.register("minji@example.com").await);
    let request = SetRole { user: user.account.id, role: Role::Admin };
    let give = async |ctx| world.auth.set_role(&ctx, request).await;
    assert_eq!(give(world.anonymous()).await, Err(Error::Common(CommonError::SignInRequired)));
    assert_eq!(give(world.of(&user)).await, Err(Error::Common(CommonError::AdminRequired)));
    assert!(!world.is_revoked(&user).await);

    assert_eq!(give(world.of(&admin)).await.unwrap().role, Role::Admin);
    assert!(world.is_revoked(&user).await, "a token with an outdated lower role is revoked too");
    assert_eq!(world.refresh(&user.refresh_token).await, Err(Error::RefreshInvalid));
    let promoted = world.login("minji@example.com", PASSWORD).await.unwrap();
    assert_eq!(world.verify(&promoted.access_token).access.role, Role::Admin);

    assert_eq!(give(world.of(&admin)).await.unwrap().role, Role::Admin);
    assert!(!world.is_revoked(&promoted).await, "setting the same role changes nothing");
    let nobody = SetRole { user: world.ids.next(), role: Role::User };
    assert_eq!(world.auth.set_role(&world.of(&admin), nobody).await, Err(Error::UserNotFound));
}

pub(crate) async fn a_former_admin_cannot_assign_roles_with_an_old_token(world: &World) {
    let (admin, user) = (world.admin().await, world.register("minji@example.com").await);
    let old_token = world.with_role(user.account.id, Role::Admin);
    let request = SetRole { user: user.account.id, role: Role::Admin };
    assert_eq!(
        world.auth.set_role(&old_token, request).await,
        Err(Error::Common(CommonError::AdminRequired))
    );
    assert_eq!(world.auth.set_role(&world.of(&admin), request).await.unwrap().role, Role::Admin);
}

pub(crate) async fn the_last_admin_cannot_be_removed(world: &World) {
    let admin = world.admin().await;
    let step_down = SetRole { user: admin.account.id, role: Role::User };
    assert_eq!(world.auth.set_role(&world.of(&admin), step_down).await, Err(Error::LastAdmin));
    let user = world.register("minji@example.com").await;
    let promote = SetRole { user: user.account.id, role: Role::Admin };
    world.auth.set_role(&world.of(&admin), promote).await.unwrap();
    assert_eq!(world.auth.set_role(&world.of(&admin), step_down).await.unwrap().role, Role::User);
    let close = DeleteAccount { proof: confirmed(PASSWORD), origin: home() };
    let successor = world.with_role(user.account.id, Role::Admin);
    assert_eq!(world.auth.delete_account(&successor, close).await, Err(Error::LastAdmin));
}

pub(crate) async fn the_first_admin_is_created_once_and_its_password_returned_once(world: &World) {
    let request = |email: &str, only_if_none| EnsureAdmin {
        email: email.to_owned(),
        name: "관리자".to_owned(),
        password: None,
        promote: false,
        only_if_none,
    };
    let ensure = async |request| world.auth.ensure_admin(&world.system(), request).await.unwrap();
    for stranger in [world.anonymous(), world.with_role(world.ids.next(), Role::Admin)] {
        let refused = world.auth.ensure_admin(&stranger, request("a@urr.example", true)).await;
        assert_eq!(refused, Err(Error::Common(CommonError::AdminRequired)));
    }
    let first = ensure(request("a@urr.example", true)).await;
    let password = first.password.unwrap();
    assert_eq!(password.expose().len(), 20);
    let admin = world.login("a@urr.example", password.expose()).await.unwrap();
    assert_eq!((admin.account.role, Some(admin.account.id)), (Role::Admin, first.user));
    assert!(admin.account.email_verified);
    for again in
        [request("a@urr.example", true), request("b@urr.example", true), request("a@urr.example", false)]
    {
        let nothing = ensure(again).await;
        assert_eq!((nothing.user, nothing.password), (None, None));
    }
    let user = world.register("minji@example.com").await;
    let silently = world.auth.ensure_admin(&world.system(), request("Minji@example.com", false)).await;
    assert_eq!(silently, Err(Error::AlreadyRegistered), "existing accounts are not promoted by default");
    assert!(!world.is_revoked(&user).await);
    let vouched_for = EnsureAdmin {
        promote: true,
        password: Some(Sensitive::new("an even longer sentence")),
        ..request("Minji@example.com", false)
    };
    let promoted = ensure(vouched_for).await;
    assert_eq!(
        (promoted.user, promoted.password),
        (Some(user.account.id), None),
        "an existing password is kept"
    );
    assert!(world.is_revoked(&user).await);
    assert_eq!(world.login("minji@example.com", PASSWORD).await.unwrap().account.role, Role::Admin);
}

pub(crate) async fn an_admin_is_created_with_the_given_password(world: &World) {
    let request = |password: &str| EnsureAdmin {
        email: "boss@urr.example".to_owned(),
        name: "관리자".to_owned(),
        password: Some(Sensitive::new(password)),
        promote: false,
        only_if_none: true,
    };
    let refused = world.auth.ensure_admin(&world.system(), request("short")).await;
    assert!(matches!(refused, Err(Error::Invalid { ref field, .. }) if field == "password"), "{refused:?}");
    let made = world.auth.ensure_admin(&world.system(), request(PASSWORD)).await.unwrap();
    assert!(made.new && made.password.is_none(), "a given password is not returned");
    let admin = world.login("boss@urr.example", PASSWORD).await.unwrap();
    assert_eq!((admin.account.role, Some(admin.account.id)), (Role::Admin, made.user));
}

pub(crate) async fn only_admins_and_other_roles_can_read_user_names(world: &World) {
    let (one, two) = (world.register("one@example.com").await, world.register("two@example.com").await);
    let stranger: UserId = world.ids.next();
    let request = UsersOf { users: vec![two.account.id, stranger, one.account.id] };
    let found = world.auth.users(&world.system(), request.clone()).await.unwrap().users;
    let user = |account: &urr_contracts::auth::Account| User {
        id: account.id,
        email: account.email.clone(),
        name: "김민지".to_owned(),
        role: Role::User,
    };
    assert_eq!(found, [user(&two.account), user(&one.account)], "in the order of the request");
    let admin = world.with_role(stranger, Role::Admin);
    assert_eq!(world.auth.users(&admin, request.clone()).await.unwrap().users.len(), 2);
    assert_eq!(
        world.auth.users(&world.of(&one), request.clone()).await,
        Err(Error::Common(CommonError::AdminRequired))
    );
    assert_eq!(
        world.auth.users(&world.anonymous(), request).await,
        Err(Error::Common(CommonError::SignInRequired))
    );
    for count in [0, MAX_USERS_PER_BATCH + 1] {
        let users = vec![stranger; count];
        let refused = world.auth.users(&world.system(), UsersOf { users }).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{count}");
    }
}
