//! Converts the configuration table `[cluster.values]`.

use lockhouse_base::sealing_key::SealingKeys;
use lockhouse_cluster::{StorageCredentials, ValuePlace, ValueSettings};

use super::dialects::secret_template;
use super::placeholders::Environment;
use super::tables::ClusterTable;

/// Returns where copies of stored values are. `None` if there are none.
///
/// # Errors
/// The first key that cannot be used, with the reason.
pub(super) fn value_place(table: &ClusterTable) -> Result<Option<ValuePlace>, String> {
    let Some(values) = &table.values else { return Ok(None) };
    if table.shared_key.is_none() {
        return Err("[cluster.values] needs shared_key of [cluster], which encrypts the copies".to_owned());
    }
    let is_region = |region: &str| {
        !region.is_empty()
            && region.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    if !is_region(&values.region) {
        return Err(unusable("region", "expected a-z, 0-9 and '-'"));
    }
    let place = ValuePlace {
        endpoint: values.endpoint.parse().map_err(|fault| unusable("endpoint", fault))?,
        bucket: values.bucket.parse().map_err(|fault| unusable("bucket", fault))?,
        region: values.region.clone(),
        prefix: values.prefix.parse().map_err(|fault| unusable("prefix", fault))?,
    };
    Ok(Some(place))
}

/// Returns how stored values are copied. `None` if they are not. `sealing` seals the copies, if the hosts have a key.
///
/// # Errors
/// The first key that cannot be used, with the reason.
pub(super) fn value_settings(
    table: &ClusterTable,
    sealing: Option<SealingKeys>,
    environment: &Environment,
) -> Result<Option<ValueSettings>, String> {
    let (Some(place), Some(values), Some(sealing)) = (value_place(table)?, &table.values, sealing) else {
        return Ok(None);
    };
    let secret = |key: &str, written: &str| {
        let expected = "expected a placeholder, such as \"${cred:NAME}\"";
        let template = secret_template(written, environment).ok_or_else(|| unusable(key, expected))?;
        let secret = template.resolve(environment).map_err(|error| unusable(key, error))?;
        match secret.trim() {
            "" => Err(unusable(key, "the secret is empty")),
            secret => Ok(secret.to_owned()),
        }
    };
    let credentials = StorageCredentials {
        access_key: secret("access_key", &values.access_key)?,
        secret_key: secret("secret_key", &values.secret_key)?,
    };
    Ok(Some(ValueSettings { place, credentials, sealing }))
}

fn unusable(key: &str, reason: impl std::fmt::Display) -> String {
    format!("{key} of [cluster.values]: {reason}")
}

#[cfg(test)]
mod tests {
    use super::super::tables::ClusterValuesTable;
    use super::*;

    /// Returns a table with one value replaced.
    fn table(change: impl FnOnce(&mut ClusterTable, &mut ClusterValuesTable)) -> ClusterTable {
        let mut table =
            ClusterTable { shared_key: Some("${cred:shared}".to_owned()), ..ClusterTable::default() };
        let mut values = ClusterValuesTable {
            endpoint: "https://s3.example.com".to_owned(),
            bucket: "values".to_owned(),
            access_key: "${cred:access}".to_owned(),
            secret_key: "${cred:secret}".to_owned(),
            ..ClusterValuesTable::default()
        };
        change(&mut table, &mut values);
        ClusterTable { values: Some(values), ..table }
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_the_reason() {
        let reason =
            |change: fn(&mut ClusterTable, &mut ClusterValuesTable)| match value_place(&table(change)) {
                Ok(_) => "used".to_owned(),
                Err(reason) => reason,
            };
        assert_eq!(reason(|_, _| ()), "used");
        assert_eq!(
            reason(|table, _| table.shared_key = None),
            "[cluster.values] needs shared_key of [cluster], which encrypts the copies"
        );
        assert_eq!(
            reason(|_, values| values.endpoint = "http://s3.example.com".to_owned()),
            "endpoint of [cluster.values]: expected https://HOST or https://HOST:PORT, or http://127.0.0.1:PORT for a server on this \
             machine"
        );
        assert_eq!(
            reason(|_, values| values.bucket = "V".to_owned()),
            "bucket of [cluster.values]: expected 3 to 63 of a-z, 0-9, '-' and '.'"
        );
        assert_eq!(
            reason(|_, values| values.prefix = "a//b".to_owned()),
            "prefix of [cluster.values]: expected at most 200 of a-z, A-Z, 0-9, '-' and '_', in parts that '/' separates"
        );
        assert_eq!(
            reason(|_, values| values.region = "EU".to_owned()),
            "region of [cluster.values]: expected a-z, 0-9 and '-'"
        );
        assert_eq!(value_place(&ClusterTable::default()), Ok(None), "control: without the table");
    }

    #[test]
    fn keys_in_the_configuration_itself_are_refused_and_not_shown() {
        let sealing =
            SealingKeys::derive(&"k".repeat(32), lockhouse_base::sealing_key::Purpose::ValueCopies).ok();
        let plain = table(|_, values| values.secret_key = "PLAIN-SECRET".to_owned());
        let environment = Environment::default();
        let reason = value_settings(&plain, sealing, &environment).err().unwrap_or_default();
        assert!(reason.contains("of [cluster.values]") && !reason.contains("PLAIN"), "{reason}");
    }
}
