// Asks the service by the client of openapi-generator's go, and reports what it got as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	vmsizes "github.com/GIT_USER_ID/GIT_REPO_ID"
)

type object = map[string]any

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

// Every call also gives the HTTP response, which is not needed here.
func body[T any](value T, _ any, err error) T { return must(value, err) }

func main() {
	configuration := vmsizes.NewConfiguration()
	configuration.Servers = vmsizes.ServerConfigurations{{URL: os.Args[1]}}
	client := vmsizes.NewAPIClient(configuration)
	report := object{"problem": problem(client)}
	for _, part := range []object{sizes(client), walk(client), models(client)} {
		for name, value := range part {
			report[name] = value
		}
	}
	must(0, json.NewEncoder(os.Stdout).Encode(report))
}

func sizes(client *vmsizes.APIClient) object {
	api := client.SizesAPI
	cheap := api.ListSizes(ctx).MinGpuMem(80).Sort([]string{"usd_per_hour"}).Limit(1)
	cheapest := body(cheap.Execute()).Items[0]
	current := []vmsizes.SizeStatus{vmsizes.SIZE_STATUS_CURRENT, vmsizes.SIZE_STATUS_RETIRING}
	asked := api.ListSizes(ctx).Gpu([]string{"A100", "H100"}).Status(current).Nvlink(true)
	size := body(api.ShowSize(ctx, "NV6ads_A10_v5").Execute())
	csv := body(client.ExportsAPI.ExportSizesCsv(ctx).Gpu([]string{"A100"}).Execute())
	return object{
		"cheapest": object{"name": cheapest.Name, "usd_per_hour": cheapest.UsdPerHour.Get()},
		"as_of":    cheapest.OnDemandAsOf.Get(),
		"chosen":   body(asked.Execute()).Total,
		"size": object{
			"name":            size.Name,
			"gpu_count":       size.GpuCount.Get(),
			"gpu_fraction":    size.GpuFraction.Get(),
			"nvlink":          size.Nvlink.Get(),
			"disputed_fields": size.DisputedFields,
		},
		"csv": strings.Count(string(must(io.ReadAll(csv))), "\n"),
	}
}

func walk(client *vmsizes.APIClient) object {
	walked := []string{}
	ask := client.SizesAPI.ListSizes(ctx).Limit(25)
	for {
		page := body(ask.Execute())
		for _, size := range page.Items {
			walked = append(walked, size.Name)
		}
		if page.NextCursor.Get() == nil {
			return object{"walked": walked, "total": page.Total}
		}
		ask = ask.Cursor(*page.NextCursor.Get())
	}
}

func models(client *vmsizes.APIClient) object {
	inference := vmsizes.NewInferenceIn()
	inference.SetContextTokens(8192)
	inference.SetConcurrency(32)
	constraints := vmsizes.NewConstraintsIn()
	constraints.SetRegions([]string{"westeurope"})
	workload := vmsizes.NewFitIn()
	workload.SetModel("llama-3.1-70b")
	workload.SetInference(*inference)
	workload.SetConstraints(*constraints)
	workload.SetInclude([]vmsizes.FitInclude{vmsizes.FIT_INCLUDE_REJECTED})
	fit := body(client.FitAPI.FitWorkload(ctx).FitIn(*workload).Execute())
	best, rejected := fit.Items[0], fit.Rejected[0]

	asked := vmsizes.NewEstimateIn()
	asked.SetModel("llama-3.1-70b")
	asked.SetInference(*inference)
	estimate := body(client.FitAPI.EstimateWorkload(ctx).EstimateIn(*asked).Execute())
	return object{
		"fit": object{
			"size":         best.Size,
			"usd_per_hour": best.Cost.OnDemand.UsdPerHour.Get(),
			"rejected":     rejected.Size,
			"code":         rejected.Failures[0].Code,
		},
		"parameters": estimate.Parameters.Total.Value.Get(),
	}
}

func problem(client *vmsizes.APIClient) object {
	_, _, err := client.SizesAPI.ShowSize(ctx, "nothing").Execute()
	var refusal *vmsizes.GenericOpenAPIError
	if !errors.As(err, &refusal) {
		must(0, fmt.Errorf("there is a size named nothing, or no problem is told: %v", err))
	}
	problem := refusal.Model().(vmsizes.Problem)
	return object{
		"type": problem.Type, "title": problem.Title, "status": problem.Status, "detail": problem.Detail,
	}
}
