/// <reference types="node" />
// Which property names are the viewer's own: every use of the name is a property that an interface in src declares.
// The bundle shortens these; a name that the browser, the document or a plain record has, too, is left alone.

import ts from "typescript";

/** ownProperties looks at every use of a property in src through the compiler's eyes. */
export function ownProperties(folder: string): string[] {
  const config = ts.getParsedCommandLineOfConfigFile(folder + "/tsconfig.json", {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic: () => {} })!;
  const program = ts.createProgram(config.fileNames, config.options);
  const checker = program.getTypeChecker();
  const sources = program.getSourceFiles().filter((f) => f.fileName.startsWith(folder + "/src/"));
  const uses = new Map<string, boolean>();

  const isOwn = (s: ts.Symbol | undefined): boolean =>
    !!s?.declarations?.length && s.declarations.every((d) => (ts.isPropertySignature(d) || ts.isMethodSignature(d)) && sources.includes(d.getSourceFile()));
  const use = (name: string, s: ts.Symbol | undefined) => uses.set(name, isOwn(s) && (uses.get(name) ?? true));

  const visit = (n: ts.Node): void => {
    if (ts.isPropertyAccessExpression(n)) use(n.name.text, checker.getSymbolAtLocation(n.name));
    else if (ts.isBindingElement(n) && ts.isObjectBindingPattern(n.parent) && !n.dotDotDotToken) {
      const name = n.propertyName ?? n.name;
      if (ts.isIdentifier(name)) use(name.text, checker.getTypeAtLocation(n.parent).getProperty(name.text));
    } else if (
      (ts.isPropertyAssignment(n) || ts.isShorthandPropertyAssignment(n) || ts.isMethodDeclaration(n) || ts.isPropertySignature(n) || ts.isMethodSignature(n)) &&
      ts.isIdentifier(n.name)
    ) {
      const { name, parent } = n;
      if (!ts.isObjectLiteralExpression(parent)) use(name.text, checker.getSymbolAtLocation(name));
      else {
        const type = checker.getContextualType(parent);
        use(name.text, type && checker.getNonNullableType(type).getProperty(name.text));
      }
    }
    ts.forEachChild(n, visit);
  };
  sources.forEach(visit);
  return [...uses.keys()].filter((name) => uses.get(name)).sort();
}
