//! A person at the panel: a browser with its cookie, on the panel's own page.

use std::sync::LazyLock;

use hotline_persistence::password::Password;
use hotline_persistence::tables::admins;
use hotline_persistence::tables::people::{self, PersonId};
use hotline_persistence::{AdminId, CompanyId, UserId};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{Api, Reply, TestApp};

/// The password of every person.
pub const PASSWORD: &str = "correct horse battery";

/// Computed once per process, since hashing a password is slow on purpose.
static PASSWORD_HASH: LazyLock<String> =
    LazyLock::new(|| Password::parse(PASSWORD.to_owned()).expect("a password").hash().expect("a hash"));

/// A person's browser.
#[derive(Clone)]
pub struct Person {
    pub api: Api,
    /// `name=value`, once signed in.
    pub cookie: Option<String>,
    /// The company in which an admin works.
    pub company: Option<CompanyId>,
}

impl Person {
    /// A browser in which no person is signed in yet.
    pub fn nobody(app: &TestApp) -> Self {
        Self { api: app.api.clone(), cookie: None, company: None }
    }

    /// A signed-in user of the test's company, who gets a password. Only in a service of the test's own: in the shared
    /// one, the same e-mail is in more companies than a sign-in looks at, and they share one limit of attempts.
    pub async fn user(app: &TestApp, user: UserId, email: &str) -> Self {
        Self::give_password(app, user).await;
        let mut person = Self::nobody(app);
        assert_eq!(person.sign_in(email, json!({})).await.data(200)["state"], "open");
        person
    }

    /// Gives a user of the test's company [`PASSWORD`], in the table: an integration may not do so for an
    /// administrator.
    pub async fn give_password(app: &TestApp, user: UserId) {
        let person = PersonId::User(app.company.id, user);
        let mut db = app.db.acquire().await.expect("a connection");
        people::set_password(&mut db, person, &PASSWORD_HASH).await.expect("a password");
        people::shut_out(&mut db, person).await.expect("the sessions are ended");
    }

    /// Gives a user of the test's company the profile with this name, in the table. Returns the profile's id.
    pub async fn give_profile(app: &TestApp, user: UserId, profile: &str) -> i64 {
        let query = sqlx::query_scalar(
            "update users u set profile_id = p.id from profiles p
             where u.company_id = $1 and u.id = $2 and p.company_id = $1 and p.name = $3 returning p.id",
        );
        query.bind(app.company.id).bind(user).bind(profile).fetch_one(&app.db).await.expect("a profile")
    }

    /// A new admin, signed in.
    pub async fn admin(app: &TestApp, email: &str) -> (Self, AdminId) {
        let id = admins::insert(&app.db, email, &PASSWORD_HASH).await.expect("an administrator").id;
        let mut person = Self::nobody(app);
        assert_eq!(person.sign_in(email, json!({})).await.data(200)["state"], "open");
        (person, id)
    }

    /// The same person, at work in this company.
    pub fn in_company(&self, company: CompanyId) -> Self {
        Self { company: Some(company), ..self.clone() }
    }

    /// A request of the panel's own page, below the panel's API.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.request_from_any_page(method, path).header("sec-fetch-site", "same-origin")
    }

    /// A request with the cookie. The caller adds the header that says which page it comes from.
    pub fn request_from_any_page(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.api.anonymous(method, &format!("/panel/api/v1{path}"));
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        if let Some(company) = self.company {
            request = request.header("hotline-company", company.to_string());
        }
        request
    }

    pub async fn get(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        Reply::of(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Reply {
        Reply::of(self.request(Method::PUT, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        Reply::of(self.request(Method::DELETE, path)).await
    }

    /// Signs in with [`PASSWORD`] and the fields of `more`, which may replace it; keeps the cookie.
    pub async fn sign_in(&mut self, email: &str, more: Value) -> Reply {
        let mut body = json!({"email": email, "password": PASSWORD});
        body.as_object_mut().expect("a body").extend(more.as_object().cloned().unwrap_or_default());
        let reply = self.post("/session", body).await;
        self.keep_cookie(&reply);
        reply
    }

    /// Keeps the cookie an answer sets.
    pub fn keep_cookie(&mut self, reply: &Reply) {
        if let Some(line) = reply.headers.get("set-cookie") {
            let line = line.to_str().expect("a line");
            self.cookie = line.split(';').next().map(str::to_owned);
        }
    }
}
