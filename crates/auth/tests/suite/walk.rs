//! A long random walk over refresh tokens, compared with a simple model.

use std::{collections::HashMap, time::Duration};

use urr_contracts::auth::{Error, Logout, Origin, Sensitive};
use urr_kernel::Timestamp;

use super::world::{DAY, World, away, home};

/// How long, and how often, a client may repeat a refresh.
const GRACE: Duration = Duration::from_secs(10);
const MAX_GRACE_USES: u32 = 20;

const STEPS: usize = 400;

/// The model of one session.
struct Model {
    ends: Timestamp,
    over: bool,
    tokens: HashMap<String, Token>,
    /// The tokens in the order of issue.
    chain: Vec<String>,
}

struct Token {
    expires: Timestamp,
    rotated: Option<(Timestamp, usize, u32)>,
}

impl Model {
    /// The expected result of presenting a token.
    fn present(&mut self, token: &str, client: usize, now: Timestamp) -> Result<(), Error> {
        let leads_to_newest = self.leads_to_newest(token, client);
        let Some(token) = self.tokens.get_mut(token) else { return Err(Error::RefreshInvalid) };
        if token.expires <= now {
            return Err(Error::RefreshInvalid);
        }
        let alive = !self.over && self.ends > now;
        match &mut token.rotated {
            None if alive => {
                token.rotated = Some((now, client, 0));
                Ok(())
            }
            None => Err(Error::RefreshInvalid),
            Some((at, by, uses))
                if *by == client
                    && now <= at.after(GRACE)
                    && *uses < MAX_GRACE_USES
                    && (leads_to_newest || !alive) =>
            {
                if !alive {
                    return Err(Error::RefreshInvalid);
                }
                *uses += 1;
                Ok(())
            }
            Some(_) if self.over => Err(Error::RefreshInvalid),
            Some(_) => {
                self.over = true;
                Err(Error::RefreshReused)
            }
        }
    }

    /// Whether all successors of a token were exchanged by this client too, within the limit.
    fn leads_to_newest(&self, token: &str, client: usize) -> bool {
        let after = self.chain.iter().skip_while(|known| *known != token).skip(1);
        let exchanged: Vec<usize> =
            after.filter_map(|known| self.tokens[known].rotated.as_ref().map(|(_, by, _)| *by)).collect();
        exchanged.len() <= MAX_GRACE_USES as usize && exchanged.iter().all(|by| *by == client)
    }
}

pub(crate) async fn refresh_tokens_do_what_the_simple_model_says(world: &World) {
    let clients: [Origin; 3] = [home(), away(1), away(2)];
    let mut sessions: Vec<Model> = Vec::new();
    let mut known: Vec<(usize, Sensitive)> = Vec::new();
    let (mut renewed, mut stolen) = (0, 0);
    for step in 0..STEPS {
        let [choice, pick, client] = world.ids.bytes::<3>().map(usize::from);
        let now = world.clock.now();
        if known.is_empty() || choice < 20 {
            let user = world.register(&format!("walker{step}@example.com")).await;
            let token = Token { expires: user.refresh_expires_at, rotated: None };
            let chain = vec![user.refresh_token.expose().to_owned()];
            let tokens = HashMap::from([(chain[0].clone(), token)]);
            sessions.push(Model { ends: now.after(30 * DAY), over: false, tokens, chain });
            known.push((sessions.len() - 1, user.refresh_token));
        } else if choice < 60 {
            let spans = [Duration::from_secs(4), Duration::from_secs(11), Duration::from_hours(5), 2 * DAY];
            world.clock.advance(spans[pick % spans.len()]);
        } else if choice < 70 {
            let (session, token) = known[pick % known.len()].clone();
            let request = Logout { session: None, refresh_token: Some(token), everywhere: false };
            world.auth.logout(&world.anonymous(), request).await.unwrap();
            sessions[session].over = true;
        } else {
            // Mostly the newest tokens, as browsers do; sometimes an old one.
            let recent = known.len().saturating_sub(4);
            let at = if choice < 110 { pick % known.len() } else { recent + pick % (known.len() - recent) };
            let (session, token) = known[at].clone();
            let client = client % clients.len();
            let expected = sessions[session].present(token.expose(), client, now);
            let got = world.refresh_from(&token, &clients[client]).await;
            assert_eq!(got.as_ref().map(|_| ()).map_err(Clone::clone), expected, "step {step}");
            stolen += usize::from(expected == Err(Error::RefreshReused));
            if let Ok(pair) = got {
                renewed += 1;
                let (text, model) = (pair.refresh_token.expose().to_owned(), &mut sessions[session]);
                let fresh = Token { expires: pair.refresh_expires_at, rotated: None };
                // A repeat gets the token of the first response.
                if model.tokens.insert(text.clone(), fresh).is_none() {
                    model.chain.push(text);
                }
                known.push((session, pair.refresh_token));
            }
        }
    }
    assert!(
        renewed > 10 && stolen > 0,
        "{renewed} renewed and {stolen} reused: too few for a meaningful walk"
    );
}
