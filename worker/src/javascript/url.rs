//! Parsing of URLs and of their queries, as the WHATWG standard describes. `url.js` has the classes.

use rquickjs::{Ctx, Function, Object, Result};
use url::{Url, form_urlencoded, quirks};

/// Adds the native functions `parseUrl`, `changeUrl`, `parseQuery` and `writeQuery`.
pub(super) fn add<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set("parseUrl", Function::new(ctx.clone(), parse)?)?;
    natives.set("changeUrl", Function::new(ctx.clone(), change)?)?;
    // Names and values in turn.
    let parse_query = |query: String| -> Vec<String> {
        form_urlencoded::parse(query.as_bytes())
            .flat_map(|(name, value)| [name.into_owned(), value.into_owned()])
            .collect()
    };
    natives.set("parseQuery", Function::new(ctx.clone(), parse_query)?)?;
    let write_query = |pairs: Vec<String>| -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for pair in pairs.chunks_exact(2) {
            query.append_pair(&pair[0], &pair[1]);
        }
        query.finish()
    };
    natives.set("writeQuery", Function::new(ctx.clone(), write_query)?)
}

/// Returns the components of a URL in the order of `url.js`; nothing if it is invalid.
fn parse(text: String, base: Option<String>) -> Vec<String> {
    let base = match base.map(|base| Url::parse(&base)) {
        Some(Err(_)) => return Vec::new(),
        Some(Ok(base)) => Some(base),
        None => None,
    };
    Url::options().base_url(base.as_ref()).parse(&text).map_or_else(|_| Vec::new(), |url| components(&url))
}

/// Changes a component of a URL as an assignment to a property does, and returns the new components. An invalid value
/// changes nothing, except that an invalid `href` returns nothing.
fn change(href: String, name: String, value: String) -> Vec<String> {
    let Ok(mut url) = Url::parse(&href) else { return Vec::new() };
    // As in the standard, an assignment of an invalid value is ignored.
    let _: std::result::Result<(), ()> = match name.as_str() {
        "href" => return Url::parse(&value).map_or_else(|_| Vec::new(), |url| components(&url)),
        "protocol" => quirks::set_protocol(&mut url, &value),
        "username" => quirks::set_username(&mut url, &value),
        "password" => quirks::set_password(&mut url, &value),
        "host" => quirks::set_host(&mut url, &value),
        "hostname" => quirks::set_hostname(&mut url, &value),
        "port" => quirks::set_port(&mut url, &value),
        "pathname" => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        "search" => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    components(&url)
}

fn components(url: &Url) -> Vec<String> {
    let parts = [
        quirks::href(url),
        &quirks::origin(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
    ];
    parts.map(str::to_owned).to_vec()
}
