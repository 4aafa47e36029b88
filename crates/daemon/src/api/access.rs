//! One table says which role may use which path; the functions here apply the table to a caller. A test checks that the
//! table has exactly the operations of the OpenAPI document.

use axum::http::Method;

use crate::access::{Reach, Role};

/// The right of a role to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// The role may not use the path.
    No,
    /// The role gets the whole answer.
    Yes,
    /// The role gets the part of the answer that concerns the caller's tenant.
    Part,
    /// The role may use the path if the path names the caller's tenant. For another tenant the answer is the same as
    /// for a tenant that does not exist.
    Own,
}

/// The rights of the roles to one method of a path.
pub(super) struct Row {
    method: &'static str,
    path: &'static str,
    rights: Rights,
}

enum Rights {
    /// Everybody may use the path.
    Anybody,
    /// The rights in the order of [`Role::ALL`]: admin, operator, tenant, metrics.
    Roles([Right; 4]),
}

const fn row(method: &'static str, path: &'static str, rights: [Right; 4]) -> Row {
    Row { method, path, rights: Rights::Roles(rights) }
}

/// The page contains nothing of Weir's state, and asks for a token itself.
const fn page(path: &'static str) -> Row {
    Row { method: "GET", path, rights: Rights::Anybody }
}

use Right::{No, Own, Part, Yes};

/// All operations. Nobody may use an operation that is not in this table.
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

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The request is answered.
    Answer,
    /// The caller has to show an account.
    Ask,
    /// The caller's role may not use the path.
    Forbid,
    /// The answer is the same as for a tenant that does not exist.
    Hide,
    /// The path has no such method.
    NoMethod,
    /// The path does not exist.
    NoPath,
}

/// The decision for a caller. `path`: the path as in the routes. `named`: the tenant in the path.
pub(super) fn decide(
    method: &Method,
    path: Option<&str>,
    caller: Option<&Reach>,
    named: Option<&str>,
) -> Decision {
    let rows = || TABLE.iter().filter(|row| Some(row.path) == path);
    // Each path with GET also has HEAD.
    let method = if method == Method::HEAD { Method::GET } else { method.clone() };
    let row = rows().find(|row| row.method == method.as_str());
    let rights = row.map(|row| &row.rights);
    match (rights, caller) {
        (Some(Rights::Anybody), _) => Decision::Answer,
        // Callers without an account do not learn which paths exist.
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
    /// The operation in the form `GET /path`.
    pub(super) fn operation(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The right of a role to the operation; `None` if everybody may use the operation.
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
    fn access_is_decided_by_method_path_role_and_tenant() {
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
        // A caller without an account gets the page, but not the data that the page requests.
        for page in ["/", "/page/{*file}"] {
            check(Method::GET, Some(page), None, None, Decision::Answer);
            check(Method::POST, Some(page), None, None, Decision::Ask);
        }
        check(Method::GET, Some("/api/v1/events"), None, None, Decision::Ask);
        check(Method::GET, Some("/api/v1/events"), Some(&own), None, Decision::Answer);
        check(Method::GET, Some("/forgotten"), Some(&operator), None, Decision::Forbid);
    }

    #[test]
    fn only_admins_and_the_owning_tenants_have_the_right_to_change() {
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
    fn the_access_table_has_exactly_the_operations_of_the_openapi_document() {
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
