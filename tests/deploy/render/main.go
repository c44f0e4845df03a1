// Renders a Helm chart as "helm template" does: text/template with Sprig's functions and
// those that Helm adds. Reads a Request from standard input; writes a file name and a text
// for each template, as JSON.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

// Request says what is rendered, and for which cluster.
type Request struct {
	Chart       string
	Name        string
	Namespace   string
	Values      map[string]interface{}
	KubeVersion string
	APIVersions []string
	// Objects of the cluster, for "lookup", by "apiVersion/kind/namespace/name".
	Objects map[string]map[string]interface{}
}

// Files has the files of the chart that are no templates.
type Files map[string][]byte

// Get returns a file's text, or an empty one.
func (files Files) Get(name string) string { return string(files[name]) }

// Glob returns the files with names like the pattern.
func (files Files) Glob(pattern string) Files {
	found := Files{}
	for name, content := range files {
		if matches, _ := path.Match(pattern, name); matches {
			found[name] = content
		}
	}
	return found
}

// APIVersions are groups with versions, and kinds.
type APIVersions []string

// Has tells whether the cluster has a version or a kind.
func (versions APIVersions) Has(name string) bool {
	for _, one := range versions {
		if one == name {
			return true
		}
	}
	return false
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var request Request
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		return err
	}
	files, err := read(request.Chart)
	if err != nil {
		return err
	}
	var chart, values map[string]interface{}
	if err := yaml.Unmarshal(files["Chart.yaml"], &chart); err != nil {
		return err
	}
	if err := yaml.Unmarshal(files["values.yaml"], &values); err != nil {
		return err
	}
	// Fields of the chart are Go's in Helm: .Chart.AppVersion.
	for key, value := range chart {
		chart[strings.ToUpper(key[:1])+key[1:]] = value
	}
	rendered, err := render(files, map[string]interface{}{
		"Chart":  chart,
		"Values": merged(values, request.Values),
		"Files":  files,
		"Release": map[string]interface{}{
			"Name":      request.Name,
			"Namespace": request.Namespace,
			"Service":   "Helm",
			"IsInstall": true,
			"IsUpgrade": false,
			"Revision":  1,
		},
		"Capabilities": map[string]interface{}{
			"APIVersions": APIVersions(request.APIVersions),
			"KubeVersion": map[string]interface{}{
				"Version":    request.KubeVersion,
				"GitVersion": request.KubeVersion,
			},
		},
	}, request.Objects)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(rendered)
}

// read returns all files of a chart, those behind links, too.
func read(chart string) (Files, error) {
	files := Files{}
	var walk func(folder, name string) error
	walk = func(folder, name string) error {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			file, inside := filepath.Join(folder, entry.Name()), path.Join(name, entry.Name())
			info, err := os.Stat(file)
			if err != nil {
				return err
			}
			if info.IsDir() {
				if err := walk(file, inside); err != nil {
					return err
				}
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			files[inside] = content
		}
		return nil
	}
	return files, walk(chart, "")
}

// merged returns the chart's values with the user's; null removes one.
func merged(values, more map[string]interface{}) map[string]interface{} {
	result := map[string]interface{}{}
	for key, value := range values {
		result[key] = value
	}
	for key, value := range more {
		below, isMap := value.(map[string]interface{})
		before, wasMap := result[key].(map[string]interface{})
		switch {
		case value == nil:
			delete(result, key)
		case isMap && wasMap:
			result[key] = merged(before, below)
		default:
			result[key] = value
		}
	}
	return result
}

func render(files Files, values map[string]interface{}, objects map[string]map[string]interface{}) (map[string]string, error) {
	all := template.New("chart").Option("missingkey=zero")
	execute := func(one *template.Template, name string, data interface{}) (string, error) {
		var text bytes.Buffer
		if err := one.ExecuteTemplate(&text, name, data); err != nil {
			return "", err
		}
		// What Helm does about a key that is missing in a map without a type.
		return strings.ReplaceAll(text.String(), "<no value>", ""), nil
	}
	functions := sprig.TxtFuncMap()
	delete(functions, "env")
	delete(functions, "expandenv")
	for name, function := range map[string]interface{}{
		"include": func(name string, data interface{}) (string, error) {
			return execute(all, name, data)
		},
		"tpl": func(text string, data interface{}) (string, error) {
			clone, err := all.Clone()
			if err != nil {
				return "", err
			}
			one, err := clone.New("tpl").Parse(text)
			if err != nil {
				return "", err
			}
			return execute(one, "tpl", data)
		},
		"required": func(warning string, value interface{}) (interface{}, error) {
			if value == nil || value == "" {
				return nil, errors.New(warning)
			}
			return value, nil
		},
		"lookup": func(version, kind, namespace, name string) map[string]interface{} {
			if found := objects[strings.Join([]string{version, kind, namespace, name}, "/")]; found != nil {
				return found
			}
			return map[string]interface{}{}
		},
		"toYaml": func(value interface{}) string {
			text, err := yaml.Marshal(value)
			if err != nil {
				return ""
			}
			return strings.TrimSuffix(string(text), "\n")
		},
		"fromYaml": func(text string) map[string]interface{} {
			value := map[string]interface{}{}
			if err := yaml.Unmarshal([]byte(text), &value); err != nil {
				value["Error"] = err.Error()
			}
			return value
		},
		"toJson": func(value interface{}) string {
			text, err := json.Marshal(value)
			if err != nil {
				return ""
			}
			return string(text)
		},
		"fromJsonArray": func(text string) []interface{} {
			value := []interface{}{}
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				value = []interface{}{err.Error()}
			}
			return value
		},
	} {
		functions[name] = function
	}
	all.Funcs(functions)
	names := []string{}
	for name, content := range files {
		if !strings.HasPrefix(name, "templates/") {
			continue
		}
		if _, err := all.New(name).Parse(string(content)); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(path.Base(name), "_") {
			names = append(names, name)
		}
	}
	rendered := map[string]string{}
	for _, name := range names {
		text, err := execute(all, name, values)
		if err != nil {
			return nil, err
		}
		rendered[name] = text
	}
	return rendered, nil
}
