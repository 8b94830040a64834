// What the site adds to comments: a type without an example leads to those of what uses it, and a method of a
// class says what the interface's method throws. What is called or constructed must have an example of its own.
import { CommentTag, ReflectionKind } from "typedoc";

const called = ReflectionKind.Function | ReflectionKind.Class | ReflectionKind.Variable;
const types = ReflectionKind.Interface | ReflectionKind.TypeAlias;

/** What is documented of an export: a function's first signature, or the thing itself. */
export function documentedOf(reflection) {
  return reflection.signatures?.[0] ?? reflection;
}

function exampleOf(reflection) {
  return documentedOf(reflection).comment?.getTag("@example");
}

/** Warns of every export that has no example, and that nothing uses which has one. */
export function addExamples(project, serializer, logger) {
  const exported = project
    .getReflectionsByKind(ReflectionKind.SomeModule)
    .flatMap((module) => module.children ?? [])
    .filter((child) => child.kindOf(called | types));
  const users = usersOf(exported, serializer);
  // First the search, then the additions: what is added is no example.
  const found = exported
    .filter((child) => exampleOf(child) === undefined)
    .map((child) => [child, child.kindOf(called) ? [] : shownBy(child, users)]);
  for (const [child, shown] of found) {
    if (shown.length === 0) {
      logger.warn(`${child.name} of ${child.parent?.name} has no @example`);
      continue;
    }
    const links = shown.flatMap((one, index) => [
      { kind: "text", text: index === 0 ? "See " : ", " },
      { kind: "inline-tag", tag: "@link", text: one.name, target: one },
    ]);
    documentedOf(child).comment?.blockTags.push(
      new CommentTag("@example", [...links, { kind: "text", text: "." }]),
    );
  }
}

/** Which exports name an export in their types. */
function usersOf(exported, serializer) {
  const users = new Map();
  for (const user of exported) {
    for (const id of new Set(targets(serializer.toObject(user)))) {
      if (id !== user.id) users.set(id, [...(users.get(id) ?? []), user]);
    }
  }
  return users;
}

/** The ids of what a serialised reflection refers to. */
function targets(value) {
  if (typeof value !== "object" || value === null) return [];
  if (Array.isArray(value)) return value.flatMap(targets);
  const own = value.type === "reference" && typeof value.target === "number" ? [value.target] : [];
  return [...own, ...Object.values(value).flatMap(targets)];
}

/** The nearest users that have an example, at most three. */
function shownBy(child, users) {
  const seen = new Set([child]);
  for (let near = users.get(child.id) ?? []; near.length > 0; ) {
    const shown = near.filter((user) => exampleOf(user) !== undefined);
    if (shown.length > 0) return shown.slice(0, 3);
    for (const user of near) seen.add(user);
    near = [...new Set(near.flatMap((user) => users.get(user.id) ?? []))].filter(
      (user) => !seen.has(user),
    );
  }
  return [];
}

const errors = /\b[A-Z]\w*Error\b/g;

/** A method that says less than the one that it implements throws what that says, too. */
export function addThrows(project) {
  for (const signature of project.getReflectionsByKind(ReflectionKind.CallSignature)) {
    const { comment, implementationOf } = signature;
    const theirs = implementationOf?.reflection?.comment?.getTags("@throws") ?? [];
    const said = new Set(namesIn(comment?.getTags("@throws") ?? []));
    for (const tag of theirs) {
      if (namesIn([tag]).some((name) => !said.has(name))) comment?.blockTags.push(tag.clone());
    }
  }
}

/** The names of errors in what is thrown lead to their pages. */
export function linkThrows(project) {
  const classes = project.getReflectionsByKind(ReflectionKind.Class);
  const pages = new Map(classes.map((one) => [one.name, one]));
  const linked = (part) =>
    part.text
      .split(/\b([A-Z]\w*Error)\b/)
      .map((text) =>
        pages.has(text)
          ? { kind: "inline-tag", tag: "@link", text, target: pages.get(text) }
          : { kind: "text", text },
      );
  for (const { comment } of project.getReflectionsByKind(ReflectionKind.SomeSignature)) {
    for (const tag of comment?.getTags("@throws") ?? []) {
      tag.content = tag.content.flatMap((part) => (part.kind === "text" ? linked(part) : [part]));
    }
  }
}

function namesIn(tags) {
  return tags.flatMap(({ content }) =>
    content.flatMap(({ text }) => [...text.matchAll(errors)].map(([name]) => name)),
  );
}
