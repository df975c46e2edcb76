<?php
// Asks the service by the client of openapi-generator's php, and reports what it got as JSON.
require 'GuzzleHttp/autoload.php'; // of Debian's php-guzzlehttp-guzzle; with composer it is vendor/autoload.php
spl_autoload_register(function (string $class): void {
    $file = __DIR__ . '/client/lib/' . str_replace('\\', '/', preg_replace('/^VmsizesSdk\\\\/', '', $class)) . '.php';
    if (is_file($file)) {
        require $file;
    }
});

use GuzzleHttp\Client;
use VmsizesSdk\Api\ExportsApi;
use VmsizesSdk\Api\FitApi;
use VmsizesSdk\Api\SizesApi;
use VmsizesSdk\ApiException;
use VmsizesSdk\Configuration;
use VmsizesSdk\Model\ConstraintsIn;
use VmsizesSdk\Model\EstimateIn;
use VmsizesSdk\Model\FitIn;
use VmsizesSdk\Model\InferenceIn;

$at = (new Configuration())->setHost($argv[1]);
// The default configuration, whichever one the API is given: booleans are sent as true, not as 1.
Configuration::getDefaultConfiguration()->setBooleanFormatForQueryString(Configuration::BOOLEAN_FORMAT_STRING);
$http = new Client();

function sizes(SizesApi $api, ExportsApi $exports): array
{
    $cheapest = $api->listSizes(min_gpu_mem: 80, sort: ['usd_per_hour'], limit: 1)->getItems()[0];
    $size = $api->showSize('NV6ads_A10_v5');
    $chosen = $api->listSizes(gpu: ['A100', 'H100'], status: ['current', 'retiring'], nvlink: true);
    return [
        'cheapest' => ['name' => $cheapest->getName(), 'usd_per_hour' => $cheapest->getUsdPerHour()],
        'as_of' => $cheapest->getOnDemandAsOf()->format('Y-m-d'),
        'chosen' => $chosen->getTotal(),
        'size' => [
            'name' => $size->getName(),
            'gpu_count' => $size->getGpuCount(),
            'gpu_fraction' => $size->getGpuFraction(),
            'nvlink' => $size->getNvlink(),
            'disputed_fields' => $size->getDisputedFields(),
        ],
        'csv' => substr_count(file_get_contents($exports->exportSizesCsv(gpu: ['A100'])->getPathname()), "\n"),
    ];
}

function walk(SizesApi $api): array
{
    $walked = [];
    $cursor = null;
    do {
        $page = $api->listSizes(limit: 25, cursor: $cursor);
        foreach ($page->getItems() as $size) {
            $walked[] = $size->getName();
        }
        $cursor = $page->getNextCursor();
    } while ($cursor !== null);
    return ['walked' => $walked, 'total' => $page->getTotal()];
}

function models(FitApi $api): array
{
    $inference = (new InferenceIn())->setContextTokens(8192)->setConcurrency(32);
    $constraints = (new ConstraintsIn())->setRegions(['westeurope']);
    $workload = (new FitIn())->setModel('llama-3.1-70b')->setInference($inference);
    $fit = $api->fitWorkload($workload->setConstraints($constraints)->setInclude(['rejected']));
    $estimate = $api->estimateWorkload((new EstimateIn())->setModel('llama-3.1-70b')->setInference($inference));
    [$best, $rejected] = [$fit->getItems()[0], $fit->getRejected()[0]];
    return [
        'fit' => [
            'size' => $best->getSize(),
            'usd_per_hour' => $best->getCost()->getOnDemand()->getUsdPerHour(),
            'rejected' => $rejected->getSize(),
            'code' => $rejected->getFailures()[0]->getCode(),
        ],
        'parameters' => $estimate->getParameters()->getTotal()->getValue(),
    ];
}

function problem(SizesApi $api): array
{
    try {
        $api->showSize('nothing');
    } catch (ApiException $refused) {
        $problem = $refused->getResponseObject();
        return ['problem' => [
            'type' => $problem->getType(),
            'title' => $problem->getTitle(),
            'status' => $problem->getStatus(),
            'detail' => $problem->getDetail(),
        ]];
    }
    throw new RuntimeException('there is a size named nothing');
}

$sizes = new SizesApi($http, $at);
echo json_encode([
    ...sizes($sizes, new ExportsApi($http, $at)), ...walk($sizes), ...models(new FitApi($http, $at)), ...problem($sizes),
]), "\n";
