//! Bearer tokens: creation, look-up, list, revocation. One document of the store contains all tokens.
//!
//! A token is 256 random bits, and the store contains its SHA-256. Nobody can try 2^256 tokens, so a slow hash as for
//! passwords would add no protection. A look-up by hash takes the same time for a nearly right token.
//!
//! A revoked token is invalid at once, even if the revocation cannot be stored.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::{fmt, str};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;

use super::{Reach, Role};
use crate::lock::lock;
use crate::store::{Documents, StoreError};
use crate::system::{now_ms, random};

/// The place of the document in the store.
const PLACE: &str = "api/tokens";
/// The prefix of a token, so that people and scanners recognize tokens.
pub const PREFIX: &str = "weir_";
/// The maximum number of tokens.
pub const MOST: usize = 1_000;
/// The most characters of a name.
pub const LONGEST_NAME: usize = 64;

/// Seconds of Unix time.
pub type Seconds = u64;

/// The present time.
pub fn now() -> Seconds {
    now_ms() / 1_000
}

type Hash = [u8; 32];

/// The stored data of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"id": 1, "name": "alice", "role": "tenant", "tenant": "red", "made_s": 1_795_657_299_u64, "expires_s": 1_798_249_299_u64})))]
pub struct Record {
    /// The number of the token, by which it is revoked. Numbers are not used again.
    pub id: u64,
    /// The owner or the purpose of the token; may be empty.
    pub name: String,
    /// The role of the token.
    pub role: Role,
    /// The tenant of the role `tenant`.
    pub tenant: Option<String>,
    /// The creation time, in seconds of Unix time.
    pub made_s: Seconds,
    /// The expiry time; null: never.
    pub expires_s: Option<Seconds>,
}

/// A token that is valid, or was valid until recently.
#[derive(Debug)]
pub struct Token {
    record: Record,
    reach: Reach,
    hash: Hash,
    is_revoked: AtomicBool,
}

impl Token {
    /// The stored data of the token.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The rights that the token gives.
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether the token is valid now.
    pub fn is_in_force(&self, now: Seconds) -> bool {
        !self.is_revoked.load(Ordering::Relaxed) && !self.is_over(now)
    }

    fn is_over(&self, now: Seconds) -> bool {
        self.record.expires_s.is_some_and(|expires| now >= expires)
    }
}

/// The request for a new token.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The rights that the token gives.
    pub reach: Reach,
    /// The owner or the purpose.
    pub name: String,
    /// The time until the token expires; `None`: never.
    pub lasts: Option<Seconds>,
}

/// The reason why no token was made.
#[derive(Debug, PartialEq, Eq)]
pub enum TokenError {
    /// There are [`MOST`] tokens already.
    TooMany,
    /// The name is too long, or has characters that do not print.
    Name,
    /// The kernel gives no random bytes.
    Random(String),
    /// The token cannot be stored.
    Store(StoreError),
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenError::TooMany => write!(f, "there are {MOST} tokens already: revoke some"),
            TokenError::Name => {
                write!(f, "a name has at most {LONGEST_NAME} characters, all of which print")
            }
            TokenError::Random(error) => write!(f, "no random bytes: {error}"),
            TokenError::Store(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TokenError {}

/// All tokens.
pub struct Tokens {
    documents: Documents,
    /// The lock of a change, held while the store writes to the disk. Look-ups of tokens do not wait for this lock.
    changing: Mutex<()>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    next: u64,
    by_hash: HashMap<Hash, Arc<Token>>,
}

/// The stored document.
#[derive(Serialize, Deserialize)]
struct Written {
    format: u32,
    next: u64,
    tokens: Vec<WrittenToken>,
}

#[derive(Serialize, Deserialize)]
struct WrittenToken {
    sha256: String,
    #[serde(flatten)]
    record: Record,
}

const FORMAT: u32 = 1;

impl Tokens {
    /// Loads the stored tokens.
    pub fn load(documents: Documents) -> Result<Tokens, StoreError> {
        let kept = match documents.get(PLACE)? {
            None => Kept::default(),
            Some(bytes) => read(&bytes).ok_or_else(|| {
                StoreError::Database(format!("{PLACE} cannot be read: nobody's token is known"))
            })?,
        };
        Ok(Tokens { documents, changing: Mutex::new(()), kept: Mutex::new(kept) })
    }

    /// The valid token with this text.
    pub fn find(&self, text: &str, now: Seconds) -> Option<Arc<Token>> {
        let token = lock(&self.kept).by_hash.get(&hash(text)).cloned()?;
        token.is_in_force(now).then_some(token)
    }

    /// Whether at least one token is valid.
    pub fn is_any(&self, now: Seconds) -> bool {
        lock(&self.kept).by_hash.values().any(|token| token.is_in_force(now))
    }

    /// All stored tokens by number, including expired tokens.
    pub fn list(&self) -> Vec<Record> {
        let kept = lock(&self.kept);
        let stored = kept.by_hash.values().filter(|it| !it.is_revoked.load(Ordering::Relaxed));
        let mut all: Vec<Record> = stored.map(|token| token.record.clone()).collect();
        all.sort_by_key(|record| record.id);
        all
    }

    /// Makes a token: the token is stored first, and is valid then. `before` is called in the order of the store,
    /// before the token is stored; if `before` returns an error, no token is made. The text of the token is returned
    /// only here.
    pub fn make(
        &self,
        wish: Wish,
        now: Seconds,
        before: impl FnOnce(&Record) -> Result<(), StoreError>,
    ) -> Result<(String, Record), TokenError> {
        let is_fine = |c: char| !c.is_control();
        if wish.name.chars().count() > LONGEST_NAME || !wish.name.chars().all(is_fine) {
            return Err(TokenError::Name);
        }
        let text = new_text().map_err(|error| TokenError::Random(error.to_string()))?;
        let _turn = lock(&self.changing);
        let (mut tokens, id) = {
            let kept = lock(&self.kept);
            (kept.by_hash.values().cloned().collect::<Vec<_>>(), kept.next.max(1))
        };
        tokens.retain(|token| !token.is_revoked.load(Ordering::Relaxed));
        if tokens.len() >= MOST {
            tokens.retain(|token| !token.is_over(now));
        }
        if tokens.len() >= MOST {
            return Err(TokenError::TooMany);
        }
        let record = Record {
            id,
            name: wish.name,
            role: wish.reach.role(),
            tenant: wish.reach.tenant().map(str::to_owned),
            made_s: now,
            expires_s: wish.lasts.map(|lasts| now.saturating_add(lasts)),
        };
        tokens.push(Arc::new(Token {
            record: record.clone(),
            reach: wish.reach,
            hash: hash(&text),
            is_revoked: AtomicBool::new(false),
        }));
        before(&record).map_err(TokenError::Store)?;
        self.keep(id + 1, tokens).map_err(TokenError::Store)?;
        Ok((text, record))
    }

    /// Revokes the token with this number, if it exists. If the revocation cannot be stored, the token is invalid until
    /// Weir restarts; another call stores the revocation.
    pub fn revoke(
        &self,
        id: u64,
        before: impl FnOnce(&Record) -> Result<(), StoreError>,
    ) -> Result<Option<Record>, StoreError> {
        let _turn = lock(&self.changing);
        let (tokens, next) = {
            let kept = lock(&self.kept);
            (kept.by_hash.values().cloned().collect::<Vec<_>>(), kept.next)
        };
        let Some(revoked) = tokens.iter().find(|token| token.record.id == id).cloned() else {
            return Ok(None);
        };
        revoked.is_revoked.store(true, Ordering::Relaxed);
        before(&revoked.record)?;
        let is_left = |token: &Arc<Token>| !token.is_revoked.load(Ordering::Relaxed);
        self.keep(next, tokens.into_iter().filter(is_left).collect())?;
        Ok(Some(revoked.record.clone()))
    }

    fn keep(&self, next: u64, tokens: Vec<Arc<Token>>) -> Result<(), StoreError> {
        let written = |token: &Arc<Token>| WrittenToken {
            sha256: hex(&token.hash),
            record: token.record.clone(),
        };
        let mut all: Vec<WrittenToken> = tokens.iter().map(written).collect();
        all.sort_by_key(|token| token.record.id);
        let written = Written { format: FORMAT, next, tokens: all };
        let bytes = serde_json::to_vec(&written)
            .map_err(|error| StoreError::Database(format!("{PLACE}: {error}")))?;
        self.documents.put(PLACE, bytes)?;
        let by_hash = tokens.into_iter().map(|token| (token.hash, token)).collect();
        *lock(&self.kept) = Kept { next, by_hash };
        Ok(())
    }
}

fn read(bytes: &[u8]) -> Option<Kept> {
    let written: Written = serde_json::from_slice(bytes).ok()?;
    if written.format != FORMAT {
        return None;
    }
    let token = |WrittenToken { sha256, record }: WrittenToken| {
        let hash = from_hex(&sha256)?;
        let reach = Reach::new(record.role, record.tenant.as_deref()).ok()?;
        Some((hash, Arc::new(Token { record, reach, hash, is_revoked: AtomicBool::new(false) })))
    };
    let by_hash = written.tokens.into_iter().map(token).collect::<Option<_>>()?;
    Some(Kept { next: written.next, by_hash })
}

fn new_text() -> io::Result<String> {
    Ok(format!("{PREFIX}{}", hex(&random::<32>()?)))
}

fn hash(text: &str) -> Hash {
    Sha256::digest(text.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(text: &str) -> Option<Hash> {
    let mut hash = [0; 32];
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn wish(reach: Reach) -> Wish {
        Wish { reach, name: "alice".to_owned(), lasts: Some(60) }
    }

    fn tenant() -> Reach {
        Reach::Tenant("red".to_owned())
    }

    #[test]
    fn a_token_is_valid_until_expiry_or_revocation() {
        let store = Store::memory().unwrap();
        let tokens = Tokens::load(store.documents()).unwrap();
        let (text, record) = tokens.make(wish(tenant()), 1_000, |_| Ok(())).unwrap();
        assert!(text.starts_with(PREFIX) && text.len() == PREFIX.len() + 64, "{text}");
        assert_eq!((record.id, record.expires_s), (1, Some(1_060)));
        assert_eq!(tokens.find(&text, 1_059).unwrap().reach(), &tenant());
        assert!(tokens.find(&text, 1_060).is_none(), "it is over");
        assert!(tokens.find(&text[1..], 1_000).is_none());
        assert!(tokens.find("", 1_000).is_none());

        let (other, _) = tokens.make(wish(Reach::All(Role::Admin)), 1_000, |_| Ok(())).unwrap();
        let found = tokens.find(&other, 1_000).unwrap();
        assert_eq!(tokens.revoke(2, |_| Ok(())).unwrap().unwrap().id, 2);
        assert!(tokens.find(&other, 1_000).is_none());
        assert!(!found.is_in_force(1_000), "who holds it sees that too");
        assert_eq!(tokens.revoke(2, |_| Ok(())).unwrap(), None);
        let ids = |tokens: &Tokens| tokens.list().iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(&tokens), [1]);

        // A restarted process loads the tokens from the store. The store has only the hashes of tokens, and the number
        // of a revoked token is not used again.
        let again = Tokens::load(store.documents()).unwrap();
        assert!(again.find(&text, 1_000).is_some() && again.find(&other, 1_000).is_none());
        let stored = store.documents().get(PLACE).unwrap().unwrap();
        assert!(!String::from_utf8(stored).unwrap().contains(&text[PREFIX.len()..]));
        assert_eq!(again.make(wish(tenant()), 1_000, |_| Ok(())).unwrap().1.id, 3);
    }

    #[test]
    fn after_an_error_before_storing_no_token_is_made_but_a_revocation_is_valid() {
        let tokens = Tokens::load(Store::memory().unwrap().documents()).unwrap();
        let full = || Err(StoreError::Database("no space left".to_owned()));
        let refused = tokens.make(wish(tenant()), 0, |_| full()).unwrap_err();
        assert!(matches!(refused, TokenError::Store(_)));
        assert!(tokens.list().is_empty());
        let (text, record) = tokens.make(wish(tenant()), 0, |_| Ok(())).unwrap();
        tokens.revoke(record.id, |_| full()).unwrap_err();
        assert!(tokens.find(&text, 0).is_none());
        assert!(tokens.list().is_empty());
        assert!(
            tokens.revoke(record.id, |_| Ok(())).unwrap().is_some(),
            "asked again, it is stored"
        );
    }

    #[test]
    fn the_number_of_tokens_and_the_length_of_token_names_are_bounded() {
        let tokens = Tokens::load(Store::memory().unwrap().documents()).unwrap();
        for name in ["x".repeat(LONGEST_NAME + 1), "a\nb".to_owned()] {
            let wish = Wish { name, ..wish(tenant()) };
            assert_eq!(tokens.make(wish, 0, |_| Ok(())).unwrap_err(), TokenError::Name);
        }
        for _ in 0..MOST {
            tokens.make(wish(tenant()), 0, |_| Ok(())).unwrap();
        }
        let refused = tokens.make(wish(tenant()), 59, |_| Ok(())).unwrap_err();
        assert_eq!(refused, TokenError::TooMany);
        tokens.make(wish(tenant()), 60, |_| Ok(())).unwrap();
        assert_eq!(tokens.list().len(), 1, "those that are over make room");
    }

    #[test]
    fn an_invalid_stored_token_list_is_refused() {
        for text in [
            "",
            "[]",
            r#"{"format": 2, "next": 1, "tokens": []}"#,
            r#"{"format": 1, "next": 2, "tokens": [{"sha256": "00", "id": 1, "name": "", "role": "admin", "made_s": 0}]}"#,
        ] {
            let store = Store::memory().unwrap();
            store.documents().put(PLACE, text.as_bytes().to_vec()).unwrap();
            assert!(Tokens::load(store.documents()).is_err(), "{text}");
        }
    }
}
