//! The answers of the provider that tests run.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use serde_json::json;

/// How the provider answers one attempt.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Takes the message.
    Accept,
    /// Takes the message, and gives it this id.
    AcceptAs(String),
    /// Takes the message, gives no answer until it is released, and then refuses.
    Lost,
    /// Gives no answer until it is released, and then refuses.
    Hang,
    /// Gives this answer after a while.
    Late(Duration, Box<Answer>),
    /// Gives this answer once it is released.
    Held(Box<Answer>),
    /// Refuses.
    Refuse { status: u16, code: Option<i64>, message: &'static str, retry_after_s: Option<u64> },
}

impl Answer {
    pub fn refuse(status: u16, code: i64, message: &'static str) -> Self {
        Self::Refuse { status, code: Some(code), message, retry_after_s: None }
    }

    /// A refusal as the proxy in front of a provider sends it: a status without a code.
    pub fn status(status: u16) -> Self {
        Self::Refuse { status, code: None, message: "", retry_after_s: None }
    }

    /// The number sends too fast.
    pub fn channel_rate_limited() -> Self {
        Self::refuse(400, 130_429, "(#130429) Rate limit hit")
    }

    /// The recipient receives too fast.
    pub fn recipient_rate_limited() -> Self {
        Self::refuse(400, 131_056, "(#131056) (Business Account, Consumer Account) pair rate limit hit")
    }

    pub fn token_refused() -> Self {
        Self::refuse(401, 190, "Error validating access token: Session has expired")
    }

    pub fn after(self, time: Duration) -> Self {
        Self::Late(time, Box::new(self))
    }

    pub fn held(self) -> Self {
        Self::Held(Box::new(self))
    }

    pub(super) fn to_response(&self) -> HttpResponse {
        let Self::Refuse { status, code, message, retry_after_s } = self else {
            return HttpResponse::Ok().finish();
        };
        let mut response = HttpResponse::build(StatusCode::from_u16(*status).expect("a status"));
        if let Some(seconds) = retry_after_s {
            response.insert_header(("retry-after", seconds.to_string()));
        }
        match code {
            Some(code) => response.json(json!({"error": {
                "message": message,
                "type": "OAuthException",
                "code": code,
                "fbtrace_id": "A0123456789",
            }})),
            None => response.content_type("text/html").body("<html>not now</html>"),
        }
    }
}
