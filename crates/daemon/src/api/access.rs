//! Which role may ask for which path: one table, and what follows from it for a caller. A test holds that each operation of the
//! OpenAPI document is in the table, and nothing else.

use axum::http::Method;

use crate::access::{Reach, Role};

/// What a role may do with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// Nothing.
    No,
    /// Ask; the answer is whole.
    Yes,
    /// Ask; the answer has what concerns the caller's tenant, and nothing else.
    Part,
    /// Ask, where the path names the caller's tenant. Another tenant is answered as one that there is not.
    Own,
}

/// What the roles may do with one method of a path.
pub(super) struct Row {
    method: &'static str,
    path: &'static str,
    rights: Rights,
}

enum Rights {
    /// Whoever comes here at all may ask.
    Anybody,
    /// In the order of [`Role::ALL`]: admin, operator, tenant, metrics.
    Roles([Right; 4]),
}

const fn row(method: &'static str, path: &'static str, rights: [Right; 4]) -> Row {
    Row { method, path, rights: Rights::Roles(rights) }
}

/// The page says nothing of Weir's state, and asks for a token itself.
const fn page(path: &'static str) -> Row {
    Row { method: "GET", path, rights: Rights::Anybody }
}

use Right::{No, Own, Part, Yes};

/// Each operation. What is not here nobody may ask for.
#[rustfmt::skip]
pub(super) const TABLE: &[Row] = &[
    //                                                                   admin operator tenant metrics
    row("GET",    "/healthz",                                            [Yes, Yes, Part, Yes]),
    row("GET",    "/metrics",                                            [Yes, Yes, No,   Yes]),
    page("/"),
    page("/page/{*file}"),
    row("GET",    "/api/v1/summary",                                     [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/log",                                         [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/events",                                      [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/session",                                     [Yes, Yes, Yes,  Yes]),
    row("GET",    "/api/v1/openapi.json",                                [Yes, Yes, Yes,  Yes]),
    row("GET",    "/api/v1/tenants",                                     [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/tenants/{name}",                              [Yes, Yes, Own,  No]),
    row("GET",    "/api/v1/tenants/{name}/switches/{switch}/flows",      [Yes, Yes, Own,  No]),
    row("GET",    "/api/v1/tenants/{name}/switches/{switch}/trace/{flow}", [Yes, Yes, Own, No]),
    row("GET",    "/api/v1/switches/{switch}/trace/{flow}",              [Yes, Yes, No,   No]),
    row("GET",    "/api/v1/tenants/{name}/why",                          [Yes, Yes, Own,  No]),
    row("GET",    "/api/v1/tenants/{name}/labels",                       [Yes, Yes, Own,  No]),
    row("GET",    "/api/v1/tenants/{name}/labels/events",                [Yes, Yes, Own,  No]),
    row("GET",    "/api/v1/controllers",                                 [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/limits",                                      [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/refusals",                                    [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/switches",                                    [Yes, Yes, No,   No]),
    row("GET",    "/api/v1/labels",                                      [Yes, Yes, No,   No]),
    row("GET",    "/api/v1/topology",                                    [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/networks",                                    [Yes, Yes, Part, No]),
    row("GET",    "/api/v1/networks/{tenant}",                           [Yes, Yes, Own,  No]),
    row("PUT",    "/api/v1/networks/{tenant}",                           [Yes, No,  Own,  No]),
    row("DELETE", "/api/v1/networks/{tenant}",                           [Yes, No,  Own,  No]),
    row("POST",   "/api/v1/networks/{tenant}/changes",                   [Yes, No,  Own,  No]),
    row("POST",   "/api/v1/backup",                                      [Yes, No,  No,   No]),
    row("GET",    "/api/v1/tokens",                                      [Yes, No,  No,   No]),
    row("POST",   "/api/v1/tokens",                                      [Yes, No,  No,   No]),
    row("DELETE", "/api/v1/tokens/{id}",                                 [Yes, No,  No,   No]),
    row("GET",    "/api/v1/pins",                                        [Yes, Yes, No,   No]),
    row("DELETE", "/api/v1/pins/{switch}",                               [Yes, No,  No,   No]),
];

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It is answered.
    Answer,
    /// The caller has to say who that is.
    Ask,
    /// The caller's role may not do that.
    Forbid,
    /// As where there is no such tenant.
    Hide,
    /// There is no such method of this path.
    NoMethod,
    /// There is no such path.
    NoPath,
}

/// What a caller may do: `path` as the routes have it, `named` the tenant in it.
pub(super) fn decide(
    method: &Method,
    path: Option<&str>,
    caller: Option<&Reach>,
    named: Option<&str>,
) -> Decision {
    let rows = || TABLE.iter().filter(|row| Some(row.path) == path);
    // Where there is a GET there is a HEAD.
    let method = if method == Method::HEAD { Method::GET } else { method.clone() };
    let row = rows().find(|row| row.method == method.as_str());
    let rights = row.map(|row| &row.rights);
    match (rights, caller) {
        (Some(Rights::Anybody), _) => Decision::Answer,
        // Strangers do not learn what there is.
        (_, None) => Decision::Ask,
        (None, Some(_)) if path.is_none() => Decision::NoPath,
        (None, Some(_)) if rows().next().is_some() => Decision::NoMethod,
        (None, Some(_)) => Decision::Forbid,
        (Some(Rights::Roles(rights)), Some(reach)) => {
            match (rights[place(reach.role())], reach.tenant()) {
                (No, _) => Decision::Forbid,
                (Yes | Part, _) => Decision::Answer,
                (Own, own) if own.is_some() && own == named => Decision::Answer,
                (Own, _) => Decision::Hide,
            }
        }
    }
}

fn place(role: Role) -> usize {
    match role {
        Role::Admin => 0,
        Role::Operator => 1,
        Role::Tenant => 2,
        Role::Metrics => 3,
    }
}

#[cfg(test)]
impl Row {
    /// As `GET /path`.
    pub(super) fn operation(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// What a role may do with it; `None` where anybody may ask.
    fn right(&self, role: Role) -> Option<Right> {
        match &self.rights {
            Rights::Anybody => None,
            Rights::Roles(rights) => Some(rights[place(role)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_decided_by_role_path_and_tenant() {
        let own = Reach::Tenant("red".to_owned());
        let operator = Reach::All(Role::Operator);
        let network = Some("/api/v1/networks/{tenant}");
        let check = |method: Method, path, caller: Option<&Reach>, named, expected| {
            let found = decide(&method, path, caller, named);
            assert_eq!(found, expected, "{method} {path:?} {caller:?} {named:?}");
        };
        check(Method::GET, network, Some(&own), Some("red"), Decision::Answer);
        check(Method::HEAD, network, Some(&own), Some("red"), Decision::Answer);
        check(Method::PUT, network, Some(&own), Some("red"), Decision::Answer);
        check(Method::GET, network, Some(&own), Some("blue"), Decision::Hide);
        check(Method::GET, network, Some(&own), None, Decision::Hide);
        check(Method::GET, network, Some(&operator), Some("blue"), Decision::Answer);
        check(Method::PUT, network, Some(&operator), Some("blue"), Decision::Forbid);
        check(Method::PUT, network, None, Some("red"), Decision::Ask);
        check(Method::POST, network, Some(&own), Some("red"), Decision::NoMethod);
        check(Method::POST, None, Some(&own), None, Decision::NoPath);
        check(Method::GET, None, None, None, Decision::Ask);
        // The page comes to whoever asks; what it asks for does not.
        for page in ["/", "/page/{*file}"] {
            check(Method::GET, Some(page), None, None, Decision::Answer);
            check(Method::POST, Some(page), None, None, Decision::Ask);
        }
        check(Method::GET, Some("/api/v1/events"), None, None, Decision::Ask);
        check(Method::GET, Some("/api/v1/events"), Some(&own), None, Decision::Answer);
        check(Method::GET, Some("/forgotten"), Some(&operator), None, Decision::Forbid);
    }

    #[test]
    fn the_roles_may_do_less_and_less() {
        for row in TABLE {
            let rights = Role::ALL.map(|role| row.right(role));
            let Some(rights) = rights.into_iter().collect::<Option<Vec<_>>>() else { continue };
            let operation = row.operation();
            assert_eq!(rights[0], Yes, "{operation}: an admin may do everything");
            let reads = row.method == "GET";
            assert!(reads || (rights[1], rights[3]) == (No, No), "{operation}");
            assert!(reads || matches!(rights[2], No | Own), "{operation}");
        }
    }

    #[test]
    fn the_table_has_each_operation_of_the_document_and_no_other() {
        let document = serde_json::to_value(super::super::document()).unwrap();
        let mut said: Vec<String> = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            let methods = methods.as_object().unwrap().keys();
            said.extend(methods.map(|method| format!("{} {path}", method.to_uppercase())));
        }
        said.sort();
        let operations = TABLE.iter().filter(|row| !matches!(row.rights, Rights::Anybody));
        let mut rows: Vec<String> = operations.map(Row::operation).collect();
        rows.sort();
        assert_eq!(rows, said);
    }
}
