//! Masks the passwords in values of options before they are shown.

use url::Url;

/// What is shown instead of a secret.
pub(super) const MASK: &str = "***";

/// The URL with its passwords masked; `None` if the value is not a URL of the form `scheme://…`.
pub(super) fn masked_url(value: &str) -> Option<String> {
    let mut url = Url::parse(value).ok().filter(|url| !url.cannot_be_a_base())?;
    // An unescaped `/`, `?` or `#` in a password ends the host: the `@` is then in a later part of the URL, and no
    // password is found.
    if url.username().is_empty() && url.as_str().split_once("://").is_some_and(|(_, rest)| rest.contains('@')) {
        return Some(MASK.to_owned());
    }
    let is_password = |name: &str| name.to_lowercase().contains("password");
    let has_password_in_query = url.query_pairs().any(|(name, _)| is_password(&name));
    if url.password().is_none() && !has_password_in_query {
        return Some(value.to_owned());
    }
    if url.password().is_some() && url.set_password(Some(MASK)).is_err() {
        return Some(MASK.to_owned());
    }
    if has_password_in_query {
        let pairs: Vec<(String, String)> = url
            .query_pairs()
            .map(|(name, value)| {
                let value = if is_password(&name) { MASK.to_owned() } else { value.into_owned() };
                (name.into_owned(), value)
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(pairs);
    }
    Some(url.into())
}
