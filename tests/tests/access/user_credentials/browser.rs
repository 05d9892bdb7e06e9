//! A browser, as far as the page of logins and an authorization server need one.

use std::collections::BTreeMap;

use reqwest::redirect::Policy;
use url::form_urlencoded;

/// The number of redirects of an authorization server that the browser follows.
const REDIRECTS_MAX: usize = 10;

/// Follows no redirect by itself, and keeps the last cookie.
pub(crate) struct Browser {
    client: reqwest::Client,
    cookie: Option<String>,
}

/// A page that the browser shows.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) body: String,
    /// The header `Content-Security-Policy`.
    pub(crate) policy: String,
}

impl Default for Browser {
    fn default() -> Self {
        let client = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build();
        Self { client: client.expect("a client"), cookie: None }
    }
}

/// Encodes a field of a form.
pub(crate) fn field(name: &str, value: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish()
}

impl Browser {
    pub(crate) async fn get(&mut self, url: &str) -> Page {
        self.send(self.client.get(url)).await
    }

    pub(crate) async fn post(&mut self, url: &str, form: &str) -> Page {
        let origin = &url[..url.find("/login").unwrap_or(url.len())];
        let request = self.client.post(url).header("Content-Type", "application/x-www-form-urlencoded");
        self.send(request.header("Origin", origin).body(form.to_owned())).await
    }

    async fn send(&mut self, request: reqwest::RequestBuilder) -> Page {
        let request = match &self.cookie {
            Some(cookie) => request.header("Cookie", cookie),
            None => request,
        };
        let response = request.send().await.expect("an answer");
        let header = |name: &str| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        if let Some((cookie, rest)) = header("set-cookie").split_once(';') {
            assert!(rest.contains("HttpOnly") && rest.contains("SameSite=Lax"), "{rest}");
            self.cookie = Some(cookie.to_owned());
        }
        let (status, policy) = (response.status().as_u16(), header("content-security-policy"));
        Page { status, policy, body: response.text().await.expect("a body") }
    }

    /// Begins a login, and consents as `user` at the authorization server. Returns the address to which that sends the browser back.
    pub(crate) async fn begin(&mut self, page: &str, token: &str, user: &str) -> String {
        let shown = self.post(page, &field("token", token)).await;
        let (_, rest) = shown.body.split_once("<a href=\"").unwrap_or_else(|| panic!("{shown:?}"));
        let address = rest.split('"').next().unwrap_or_default().replace("&amp;", "&");
        let origin = &page[..page.find("/login").unwrap_or(page.len())];
        self.consent(format!("{address}&user={user}"), origin).await
    }

    /// Follows an authorization server, which consents by itself, until it sends the browser back to the origin of the service.
    async fn consent(&self, mut address: String, origin: &str) -> String {
        // By their names and paths.
        let mut cookies: BTreeMap<(String, String), String> = BTreeMap::new();
        for _ in 0..REDIRECTS_MAX {
            let at = reqwest::Url::parse(&address).expect("an address");
            let sent = cookies.iter().filter(|((_, path), _)| at.path().starts_with(path.as_str()));
            let sent: Vec<String> = sent.map(|((name, _), value)| format!("{name}={value}")).collect();
            let request = self.client.get(at).header("Cookie", sent.join("; "));
            let response = request.send().await.expect("an answer");
            for cookie in response.headers().get_all("set-cookie") {
                let mut parts = cookie.to_str().expect("text").split("; ");
                let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).expect("a cookie");
                let path = parts.find_map(|part| part.strip_prefix("path=")).unwrap_or("/");
                cookies.insert((name.to_owned(), path.to_owned()), value.to_owned());
            }
            let location = response.headers().get("location").map(|to| to.to_str().expect("text").to_owned());
            let Some(location) = location else {
                panic!("{address}: {}", response.text().await.expect("text"))
            };
            address = response.url().join(&location).expect("an address").into();
            if address.starts_with(origin) {
                return address;
            }
        }
        panic!("too many redirects: {address}")
    }

    /// Logs in with a secret, or with OAuth. Returns the text of the last page.
    pub(crate) async fn log_in(
        &mut self,
        page: &str,
        token: &str,
        secret: Option<&str>,
        user: &str,
    ) -> String {
        match secret {
            Some(secret) => {
                self.post(page, &(field("token", token) + "&" + &field("secret", secret))).await.body
            }
            None => {
                let back = self.begin(page, token, user).await;
                self.get(&back).await.body
            }
        }
    }

    pub(crate) async fn log_out(&mut self, page: &str, token: &str) -> String {
        self.post(page, &(field("token", token) + "&action=logout")).await.body
    }
}
